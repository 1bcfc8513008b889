"""Tile and block sizes that the runtime and the writers of programs share."""

AT_ONCE = 64  # bytes of a vector
DEEP = 6  # rows of a large product's tile: as many as fit into registers
GROUP = 4  # panels of a large product that are packed at a time, adjacent in memory
INNER = 512  # length of the inner axis that is packed at a time
ROWS = 192  # rows of a transposed first operand that are packed at a time
