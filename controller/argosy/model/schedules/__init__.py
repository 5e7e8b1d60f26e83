"""When is something started by the clock, and what is remembered of it?"""
