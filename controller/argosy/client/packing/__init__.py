"""What does a program of the user's own take along to its tasks? Its folder and its packages, uploaded once."""
