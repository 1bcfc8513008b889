"""Lower a graph to primitives whose values are computed in place or read where they lie."""
