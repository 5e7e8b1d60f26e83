"""What has happened to runs, tasks and instances."""
