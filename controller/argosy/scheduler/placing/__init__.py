"""What runs ask for, and where their tasks are placed."""
