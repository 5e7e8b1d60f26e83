"""Does Argosy do on this machine's GPU what its documents say?"""
