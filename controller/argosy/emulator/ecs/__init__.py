"""What would Amazon ECS do?"""
