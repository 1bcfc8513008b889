"""Iterators: the order of rows within and across epochs."""
