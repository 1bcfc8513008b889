"""From groups of nodes to the text of kernels."""
