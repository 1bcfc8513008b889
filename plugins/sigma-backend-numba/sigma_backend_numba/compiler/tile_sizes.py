"""Tile and block sizes that the runtime and the writers of programs share."""

AT_ONCE = 64  # bytes that are computed with at once
DEEP = 6  # rows of a large product's tile: as many as there are registers for
GROUP = 4  # panels of a large product that are laid out at a time: neighbours in memory
INNER = 512  # of the inner axis that are laid out at a time
ROWS = 192  # of a transposed first operand that are laid out at a time
