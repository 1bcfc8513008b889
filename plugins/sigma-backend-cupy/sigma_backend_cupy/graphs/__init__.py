"""From a graph to groups of nodes that one kernel computes."""
