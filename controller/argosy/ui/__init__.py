"""How does a browser of this machine look at a deployment? Entry: `serving.serve`; read-only."""
