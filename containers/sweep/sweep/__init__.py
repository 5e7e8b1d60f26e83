"""The program of the image argosy/sweep: one point of an elastic-net grid, cross-validated; and the best of them."""
