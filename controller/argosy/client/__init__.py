"""How does a user's program reach a deployment? Finding it, and calling its api function."""
