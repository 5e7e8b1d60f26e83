"""How does a program reach a deployment, and read what its runs say and produce? Nothing here needs a terminal."""
