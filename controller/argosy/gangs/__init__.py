"""Gangs: tasks that start, run and restart together, each on its own instance."""
