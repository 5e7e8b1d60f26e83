"""The `argosy` command: what users type, with their own credentials. Folders follow the panels of its help."""
