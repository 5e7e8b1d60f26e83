"""Fair order and exchanges at limits: numpy over runs and limits in exact integers, without AWS or a clock."""
