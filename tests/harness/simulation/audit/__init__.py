"""Is everything as it must be, after every call? One checker per family of invariants, on what really happens.

The invariants I1-I11 are those of reliability.md 4.2, I12 is that of decision 12, D4 that of
docs/maintainers/design.md, and R4, R12 and R14 are goals of reliability.md. `auditor` tells the checkers of every
fact; each checker says what is wrong.
"""
