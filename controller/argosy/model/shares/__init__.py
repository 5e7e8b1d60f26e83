"""How is the cluster shared between queues and owners?"""
