"""Changes of one section."""
