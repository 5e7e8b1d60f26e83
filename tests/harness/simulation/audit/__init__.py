"""Is every invariant kept after every call?

One checker per family of invariants judges the real events. I1-I11 are the invariants of reliability.md 4.2, I12 is
that of decision 12, D4 that of docs/maintainers/design.md, and R4, R12 and R14 are goals of reliability.md. `auditor`
passes every fact to the checkers; each checker reports violations.
"""
