"""Instances as placement sees them, present and incoming."""
