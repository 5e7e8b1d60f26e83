"""Which run pays for the time of an instance, and what is that time used for?"""
