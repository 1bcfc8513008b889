"""Resume and replay of a stored run."""
