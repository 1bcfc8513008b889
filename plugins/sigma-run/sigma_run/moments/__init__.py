"""Any moment of a run, computed again from the newest state that is kept before it, and what begins from there."""
