"""The headings under which `argosy --help` lists the commands."""

RUNS = "Runs"
SPECS = "Run specs"
SERVICES = "Services"
SCHEDULES = "Schedules"
CLUSTER = "Cluster and prices"
SETUP = "Set up"
HERE = "Try it out"
