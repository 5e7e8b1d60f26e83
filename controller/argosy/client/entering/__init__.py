"""How does a user get into a task that runs?"""
