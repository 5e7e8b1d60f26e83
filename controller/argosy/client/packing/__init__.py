"""The folder and the packages of a user's own program, uploaded once for its tasks."""
