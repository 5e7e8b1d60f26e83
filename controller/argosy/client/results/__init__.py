"""The results of a run: its manifest, its files, and their rows in one file."""
