"""The session of a trainer: state, training loop, progress, snapshots, hook contexts, and address bindings."""
