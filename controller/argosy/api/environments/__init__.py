"""Actions on services and daemons."""
