"""What `cdk deploy` puts on AWS, one construct or stack per file; start reading at `home.py`."""
