"""The decisions of one tick. Entry: `decide.decide`, which reads a moment and returns inert actions (DESIGN D1)."""
