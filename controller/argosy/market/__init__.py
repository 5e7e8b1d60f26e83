"""What to buy and what to let go: pure functions over offers, demand and supply."""
