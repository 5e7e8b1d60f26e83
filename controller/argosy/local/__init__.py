"""What does local mode consist of? An AWS with one deployment, in one process here. Entry: `cloud.LocalAws`."""
