"""The only code that changes the state: `begin` marks an action before it is done, `apply` takes a fact in."""
