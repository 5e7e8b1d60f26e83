"""Instances as placement sees them, those here and those to come."""
