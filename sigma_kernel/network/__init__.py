"""Architectures: the algebra of layers, its text form, tracing, and the network that they make."""
