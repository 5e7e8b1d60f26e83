"""Whose turn it is where a limit is reached: fair order, caps of queues, vCPU quotas."""
