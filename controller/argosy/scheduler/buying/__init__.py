"""What is bought for tasks without a place, within money, caps and quotas, and what is let go."""
