"""What have a run's attempts printed? Their log streams, and the last lines of those that failed."""
