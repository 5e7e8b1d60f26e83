"""The deployment under test: controllers, when they are invoked, and what they record."""
