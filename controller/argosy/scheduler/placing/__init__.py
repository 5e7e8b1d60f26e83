"""Placement of the tasks that runs ask to start."""
