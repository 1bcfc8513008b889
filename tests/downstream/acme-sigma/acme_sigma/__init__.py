"""Acme's components for Sigma."""
