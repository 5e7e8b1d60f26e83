"""Purchases and releases of instances: pure functions over offers, demand and supply."""
