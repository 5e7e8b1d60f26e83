"""What is bought, and what is released? Pure functions over offers, demand and supply."""
