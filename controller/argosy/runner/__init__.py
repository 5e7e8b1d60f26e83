"""How does a user's program get what it needs, and what becomes of what it leaves?"""
