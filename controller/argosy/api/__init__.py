"""What may users ask for, and what are they answered? Everything the api function does."""
