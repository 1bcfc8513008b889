"""The registry of named values, and its addresses and patterns."""
