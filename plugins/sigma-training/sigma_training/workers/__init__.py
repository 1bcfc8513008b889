"""Training by a group of workers: the sharded step, what a worker does, and what the operator does."""
