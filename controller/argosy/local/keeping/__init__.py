"""What of local mode is there again after a restart?"""
