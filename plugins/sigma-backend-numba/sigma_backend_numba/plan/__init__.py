"""Plan a program: fuse nodes into loop nests, order them in stages, and place every value in memory."""
