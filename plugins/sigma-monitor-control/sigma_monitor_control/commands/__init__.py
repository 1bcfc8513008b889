"""The commands of this room: each connects to a run, asks it for something, and prints the answer."""
