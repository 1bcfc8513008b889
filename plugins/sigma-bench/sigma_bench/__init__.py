"""Benchmarks of Sigma's backends against PyTorch, JAX and a NumPy loop."""
