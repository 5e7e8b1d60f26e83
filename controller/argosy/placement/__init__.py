"""Placement of tasks on instances. Numpy over columns; no AWS, no clock, and no randomness except from a seed."""
