"""Why does a run wait, and what is its place in line?"""
