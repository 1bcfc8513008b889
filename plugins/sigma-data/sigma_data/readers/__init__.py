"""From bytes to arrays."""
