"""What may a user ask for? The run spec: its fields, its parsing, its checks, and what each task is told."""
