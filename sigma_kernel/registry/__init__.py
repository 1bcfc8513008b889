"""The tree of named values, and the language of addresses."""
