def check_strategy(s): return []
