"""The command `catalogue`: the instance types Argosy knows, and how their figures are refreshed from AWS."""
