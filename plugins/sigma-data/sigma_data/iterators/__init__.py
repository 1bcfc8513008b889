"""Orders of rows."""
