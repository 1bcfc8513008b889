"""From text to machine code: a small typed part of Python, translated to LLVM and kept on disk as object code."""
