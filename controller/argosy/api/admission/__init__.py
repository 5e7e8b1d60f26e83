"""Whether this deployment may run a spec."""
