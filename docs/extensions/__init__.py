"""What the documentation adds to Sphinx: pages generated from the code, and notebooks."""
