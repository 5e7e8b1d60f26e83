"""The program of the image argosy/recommender: an autoencoder that is trained and asked as DSSTNE was."""
