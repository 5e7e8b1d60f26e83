"""Commands of schedules."""
