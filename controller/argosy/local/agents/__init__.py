"""What do the ECS agents of the local instances do with their tasks?"""
