"""Look at texts before training: their lengths and words, and a configuration for them."""
