"""The session of a trainer: state, loop, progress, snapshots, bindings, hook contexts, reconfiguration, undo."""
