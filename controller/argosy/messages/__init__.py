"""What does AWS tell us? From EventBridge messages (`eventbridge.to_event`) and ECS shapes (`ecs`) to events."""
