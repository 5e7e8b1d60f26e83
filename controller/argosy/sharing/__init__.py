"""Whose turn is it where a limit is reached? Numpy over runs and limits in exact integers; no AWS, no clock."""
