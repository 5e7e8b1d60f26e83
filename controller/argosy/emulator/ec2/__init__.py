"""A model of Amazon EC2."""
