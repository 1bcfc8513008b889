"""The commands of this room: each connects to a run, sends a request, and prints the answer."""
