"""A small AWS on a virtual clock: services, instances, agents, tasks and users."""
