"""How does one tick, and one invocation, of the controller go?"""
