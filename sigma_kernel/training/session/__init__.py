"""A prepared trainer: its state, its loop, and what hooks and the registry see of it."""
