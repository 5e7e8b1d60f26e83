"""Access to a deployment for programs, and its runs' reports and results. Nothing here needs a terminal."""
