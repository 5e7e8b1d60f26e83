"""Models of AWS services, which local mode and the simulation share.

They open no socket and read no wall clock: the clock is an argument, and so are the ids. The import contracts and ruff
enforce it.
"""
