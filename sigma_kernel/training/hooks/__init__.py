"""Order hooks, run them, and run them in the background."""
