"""Compile the text of programs, a small typed part of Python, through LLVM to machine code."""
