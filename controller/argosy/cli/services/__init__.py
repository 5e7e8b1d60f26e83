"""Services: programs that are kept running."""
