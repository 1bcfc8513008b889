"""Data sets that a configuration can name."""
