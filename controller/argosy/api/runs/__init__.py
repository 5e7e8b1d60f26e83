"""Actions on runs: submit, plan, describe, cancel, retry, update, explain."""
