"""Commands and shells inside running tasks."""
