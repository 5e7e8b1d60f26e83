"""The cheapest pools for a whole backlog at once, with a bound on the cost: an LP over patterns."""
