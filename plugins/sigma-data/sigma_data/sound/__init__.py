"""Decode sound files to waves and spectrograms."""
