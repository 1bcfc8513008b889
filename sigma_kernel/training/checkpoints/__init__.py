"""Checkpoints: write them in the background, apply retention, find and read them."""
