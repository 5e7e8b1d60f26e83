"""What would AWS do? Models of ECS and EC2 that enforce the real contract on a clock that is handed in."""
