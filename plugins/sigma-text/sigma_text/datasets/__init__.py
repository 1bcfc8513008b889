"""Data sets, by name in a configuration."""
