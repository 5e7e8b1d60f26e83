"""Argosy for Python programs and notebooks. `import argosy` exports its public names."""
