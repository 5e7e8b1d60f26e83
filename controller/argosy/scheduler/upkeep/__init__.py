"""The upkeep of existing runs and attempts: stops, verifications, polls and reasons."""
