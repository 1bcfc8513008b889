"""Tables that are larger than memory: prepared once into memory-mapped arrays, and read in blocks."""
