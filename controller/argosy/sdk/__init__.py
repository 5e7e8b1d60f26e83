"""How does a Python program or a notebook use a deployment? `import argosy` gives what is public of it."""
