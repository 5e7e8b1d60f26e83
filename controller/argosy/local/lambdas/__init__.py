"""Lambda functions on this machine. Each execution environment is a process."""
