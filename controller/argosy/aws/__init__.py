"""How is AWS asked, and what do its answers mean? Adapters over boto3 clients, the watchdog and the teardown."""
