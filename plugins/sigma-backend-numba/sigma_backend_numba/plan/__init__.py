"""Plan a program: fuse nodes into loop nests, order these in stages, and place every value in memory."""
