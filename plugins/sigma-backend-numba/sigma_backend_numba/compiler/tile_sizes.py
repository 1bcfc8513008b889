"""Sizes of vectors and blocks that the runtime and the writers of programs share."""

AT_ONCE = 64  # bytes of a vector
REGISTERS = {512: 32, 256: 16, 128: 32}  # how many there are, by their bits
DEPTH = {512: 208, 256: 512, 128: 512}  # length of a block of the inner axis, by registers: a panel stays in L1
MIXED_COLUMNS = 128  # columns of the second operand of a product of bfloat16 that are packed at a time
MIXED_ROWS = 512  # rows of the first operand of a product of bfloat16 that are packed at a time
NEAR = 1 << 20  # bytes that stay in a core's own cache
