"""From a network, data and an optimiser to a session at work."""
