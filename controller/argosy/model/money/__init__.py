"""Who pays for the time of instances, and what is it used for?"""
