"""Readers: parse the bytes of a source to arrays."""
