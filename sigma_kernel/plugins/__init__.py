"""Discover plugins, look up their components, and resolve names and tables to objects."""
