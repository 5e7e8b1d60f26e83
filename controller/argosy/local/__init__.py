"""What does local mode consist of? An AWS with one deployment, in one process on this machine.

Reading order: `cloud` puts it together, `deployment` creates what the stacks create, `cell` is one Region.
"""
