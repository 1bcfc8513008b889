"""Write, find and read checkpoints."""
