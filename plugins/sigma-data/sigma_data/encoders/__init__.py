"""Encoders: turn one column of a table into numbers.

These modules import pyarrow; nothing else of the package imports them before an encoder is used.
"""
