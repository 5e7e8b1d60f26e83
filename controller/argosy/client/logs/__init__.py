"""The log streams of a run's attempts."""
