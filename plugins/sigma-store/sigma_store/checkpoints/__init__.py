"""Checkpoints: write, find and read them, apply retention, check compatibility."""
