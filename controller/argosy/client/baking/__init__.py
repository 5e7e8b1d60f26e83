"""AMIs of the deployment that hold a container image, so that instances boot with it."""
