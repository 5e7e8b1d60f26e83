"""Calls of a user's function in the tasks of a run, and their results."""
