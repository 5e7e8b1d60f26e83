"""The commands that run on this machine: local mode and demos."""
