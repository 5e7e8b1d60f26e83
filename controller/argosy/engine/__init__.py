"""One tick, and one invocation, of the controller."""
