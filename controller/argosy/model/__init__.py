"""What is known: runs, tasks, attempts, instances, pools, events, actions and money, and how are they stored?"""
