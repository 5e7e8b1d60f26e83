"""Which pools are bought for a whole backlog at once, and how far from the cheapest is that? An LP over patterns."""
