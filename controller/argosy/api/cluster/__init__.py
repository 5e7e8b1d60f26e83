"""Actions on the cluster: its instances, its history, its size."""
