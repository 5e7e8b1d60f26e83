"""Classify a range of images with a TensorFlow SavedModel; see README.md beside this folder."""
