"""Lower a graph to primitives whose values are computed or read in place."""
