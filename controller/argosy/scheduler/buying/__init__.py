"""Purchases and releases of instances, within budgets, caps and quotas."""
