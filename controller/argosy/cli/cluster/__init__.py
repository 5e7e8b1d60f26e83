"""The commands of the panel "Cluster and prices"."""
