"""Compares the time of Sigma's backends with that of hand-written loops."""
