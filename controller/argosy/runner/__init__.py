"""The runner: it fetches what a user's program needs, and delivers its results."""
