"""Recipes for Sigma: ready-to-run configurations."""
