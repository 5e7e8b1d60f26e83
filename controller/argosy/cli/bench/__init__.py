"""The `argosy bench` commands."""
