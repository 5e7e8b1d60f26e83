"""Room taken from running tasks for runs of queues that may take it."""
