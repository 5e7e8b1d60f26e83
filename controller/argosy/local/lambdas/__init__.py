"""How do Lambda functions run here? Each execution environment is a process of this machine."""
