"""The run spec: its fields, its checks, and the overrides of each task.

Entries: `parse.parse_spec` (data), `file.check_text` (the text of a file), `shards.task_overrides` (a task). Reading
order: `models`, `fields`, `parse`, then what `parse` calls.
"""
