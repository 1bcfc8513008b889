"""Preprocessors: transform the values of one section."""
