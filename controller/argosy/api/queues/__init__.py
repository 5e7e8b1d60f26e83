"""How the cluster is shared: queues, their shares and limits."""
