"""What would Amazon DynamoDB do?"""
