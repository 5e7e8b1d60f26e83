"""Faults of calls, events, machines, stored documents and the controller's own code."""
