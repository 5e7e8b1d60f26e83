"""What existing runs and attempts need: stops, verifications, polls and reasons."""
