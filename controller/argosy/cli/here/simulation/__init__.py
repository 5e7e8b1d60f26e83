"""The command `simulate`: the real controller in a simulated AWS with faults."""
