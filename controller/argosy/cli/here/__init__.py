"""The commands that run on this machine: local mode, demos, simulation."""
