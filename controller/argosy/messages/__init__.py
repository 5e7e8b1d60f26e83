"""What does AWS tell us? From EventBridge messages and ECS shapes to events."""
