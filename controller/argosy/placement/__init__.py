"""Which instance runs this task? Numpy over columns; no AWS, no clock, no chance that is not handed in."""
