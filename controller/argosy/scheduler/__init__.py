"""What should be done next? Entry: `decide.decide`, which reads a moment and returns inert actions (DESIGN D1)."""
