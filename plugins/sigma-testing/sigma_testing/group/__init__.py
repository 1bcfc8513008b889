"""Groups of workers under simulated faults."""
