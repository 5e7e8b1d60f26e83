"""The commands of the panel "Set up"."""
