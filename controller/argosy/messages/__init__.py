"""Parsers of AWS's messages: EventBridge (`eventbridge.to_event`) and ECS shapes (`ecs`) become events."""
