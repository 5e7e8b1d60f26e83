"""A model of Amazon DynamoDB."""
