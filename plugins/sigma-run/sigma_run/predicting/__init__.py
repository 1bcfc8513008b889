"""Predictions as tables: what their columns are called, how they are computed part by part, and written to a file."""
