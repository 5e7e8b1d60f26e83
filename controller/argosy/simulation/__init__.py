"""Argosy under simulated faults: the real controller in a small AWS on a virtual clock, watched by an auditor."""
