"""The journal, metrics, snapshots for rewind, and replay."""
