"""Who sends a request, and what may it change?"""
