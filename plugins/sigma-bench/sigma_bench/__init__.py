"""Measures Sigma's backends side by side with PyTorch, JAX and loops of one's own."""
