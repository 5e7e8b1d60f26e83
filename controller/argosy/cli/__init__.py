"""The `argosy` command: the users' side, with the user's own credentials."""
