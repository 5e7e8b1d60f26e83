"""Actions on schedules, and their firing."""
