"""The commands of the panels "Runs" and "Run specs"."""
