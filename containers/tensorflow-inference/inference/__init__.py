"""Classify a range of images with a TensorFlow SavedModel; see README.md next to this folder."""
