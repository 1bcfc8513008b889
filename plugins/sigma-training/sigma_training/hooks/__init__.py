"""Hooks: their order, criteria, error policies and budgets, and execution in the background."""
