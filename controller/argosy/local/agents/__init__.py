"""The ECS agents of the local instances."""
