"""A deployment in a browser of this machine. Entry: `serving.serve`."""
