"""Local mode: an AWS with one deployment, in one process on this machine. Entry: `cloud.LocalAws`."""
