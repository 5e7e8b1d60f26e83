"""Access to a deployment for programs, and what its runs report and produce. Nothing here needs a terminal."""
