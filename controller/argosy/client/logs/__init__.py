"""What have a run's attempts printed? Their log streams."""
