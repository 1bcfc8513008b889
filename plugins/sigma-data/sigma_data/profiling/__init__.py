"""Profiles of tables: the kind of every column with its reason, and what is odd about the rows."""
