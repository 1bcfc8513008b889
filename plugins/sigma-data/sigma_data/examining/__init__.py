"""Examine data for what users get silently wrong: one table of rules, for tables, pictures and data sets in splits."""
