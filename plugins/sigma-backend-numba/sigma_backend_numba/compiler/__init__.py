"""Compile the text of programs, written in a small typed subset of Python, to machine code with LLVM."""
