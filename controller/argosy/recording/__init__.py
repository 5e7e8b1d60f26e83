"""The controller's record of its facts and decisions, from which any tick can be replayed."""
