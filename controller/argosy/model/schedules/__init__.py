"""When does the clock start something, and what is remembered of it?"""
