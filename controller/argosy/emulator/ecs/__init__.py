"""A model of Amazon ECS."""
