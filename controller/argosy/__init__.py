"""Argosy's controller: decides where and on what batch tasks run, and survives what AWS does to them."""
