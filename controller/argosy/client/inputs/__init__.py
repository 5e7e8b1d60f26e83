"""Folders of this machine as inputs of tasks: uploaded once, in chunks."""
