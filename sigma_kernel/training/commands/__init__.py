"""Commands: their types, the queue, changes of components, reconfiguration, and undo."""
