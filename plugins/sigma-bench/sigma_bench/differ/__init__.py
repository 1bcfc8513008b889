"""Compare what backends compute with the meanings of the ops: each op alone, each step, and whole runs in lock-step."""
