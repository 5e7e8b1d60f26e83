"""Placement, buying and the deadline policy, measured on recorded data."""
