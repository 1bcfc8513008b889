"""Keep compiled programs on disk, and find them again."""
