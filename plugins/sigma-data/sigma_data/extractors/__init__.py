"""Extractors: split what a reader returns into sections."""
