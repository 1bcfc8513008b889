"""Sizes of vectors and blocks that the runtime and the writers of programs share."""

AT_ONCE = 64  # bytes of a vector
REGISTERS = {512: 32, 256: 16, 128: 32}  # how many there are, by their bits
DEPTH = {512: 208, 256: 512, 128: 512}  # length of a block of the inner axis, by registers: a panel stays in L1
MIXED_COLUMNS = 128  # columns of the second operand of a product by AMX that are packed at a time
MIXED_ROWS = 512  # rows of the first operand of a product by AMX that are packed at a time
NEAR = 1 << 20  # bytes that stay in a core's own cache
DOT_DEEP, DOT_FEW = 12, 4  # rows of a block of a product by dot products of bfloat16, and of a last one
DOT_ROWS = 40 * DOT_DEEP  # rows of the first operand that such a product packs at a time
DOT_PANEL = 1 << 17  # numbers of the second operand that such a product packs at a time: they stay in a core's cache
DOT_AHEAD = 16  # rows between the one that is packed, and the one that is prefetched
ORDER_KINDS = 1 << 12  # values of a digit by which orders of rows are sorted
