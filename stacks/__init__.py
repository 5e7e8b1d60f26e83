"""Constructs and stacks of `cdk deploy`, one per file; start reading at `home.py`."""
