"""The name under which the command line finds the embedded AWS."""

from controller.local.cloud import LocalAws

__all__ = ["LocalAws"]
