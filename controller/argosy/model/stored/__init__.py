"""How does the state become items of the store, and come back?"""
