"""What has a run produced? Its manifest, its files, and their rows in one file."""
