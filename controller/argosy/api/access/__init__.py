"""Who sent a request, and what may it change?"""
