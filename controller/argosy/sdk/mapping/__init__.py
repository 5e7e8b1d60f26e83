"""How do the tasks of a run call a function of the user's program, and how do its results come back?"""
