"""The users of a trial: what they ask for, and how they reach the api."""
