"""Environments, and what is known of the tasks of services."""
