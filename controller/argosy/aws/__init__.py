"""Adapters over boto3 clients, the watchdog and the teardown."""
