"""What should be done next? Reads a snapshot, returns inert actions (DESIGN D1)."""
