"""Encoders of columns of texts.

These modules import pyarrow; nothing else of the package imports them before an encoder is used.
"""
