"""Placement of tasks on instances. Numpy over columns; no AWS, no clock, and no chance but a seed."""
