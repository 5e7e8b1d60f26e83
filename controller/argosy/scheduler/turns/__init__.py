"""Fair order of runs, caps of queues and vCPU quotas."""
