"""Environments, and the state of the tasks of services."""
