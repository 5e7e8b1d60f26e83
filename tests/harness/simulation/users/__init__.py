"""What users of a trial ask for, and how they reach the api."""
