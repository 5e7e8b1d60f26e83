"""How does the one port answer requests to every AWS service?"""
