"""Baselines of a run: predictions without a network, which it must beat."""
