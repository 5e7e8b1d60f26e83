"""What changed from commit to commit, and how is that stored?"""
