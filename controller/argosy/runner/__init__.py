"""The runner: it fetches the files that a user's program needs, and delivers its results."""
