"""The state of local mode that survives a restart."""
