"""The `argosy` command, run with the user's own credentials. Folders follow the panels of its help."""
