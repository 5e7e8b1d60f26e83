"""The one port that answers requests to every AWS service."""
