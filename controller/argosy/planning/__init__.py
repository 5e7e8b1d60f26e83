"""What would a run cost, when would it end, and what would make it cheaper? Nothing is started to find out."""
