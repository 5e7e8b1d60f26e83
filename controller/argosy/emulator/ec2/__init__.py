"""What would Amazon EC2 do?"""
