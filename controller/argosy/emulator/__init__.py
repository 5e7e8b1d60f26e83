"""What would AWS do? Models of its services on a clock that is handed in; no socket, no wall clock."""
