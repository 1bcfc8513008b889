"""Commands: their types, the queue, what they do, and how they are undone."""
