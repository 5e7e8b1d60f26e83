"""Argosy's data: runs, tasks, attempts, instances, pools, events, actions and money, and their stored form."""
