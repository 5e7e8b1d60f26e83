"""Environments of services and daemons: their rollouts, deployments and load balancers."""
