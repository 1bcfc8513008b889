"""Ctrl-C while LLVM compiles: what LLVM has destroyed, or owns, is not destroyed again."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import gc
import linecache
import sys

from sigma_backend_numba.compiler import machine_code
from sigma_backend_numba.compiler.processor import llvm

KERNEL = "define i32 @kernel() {{ ret i32 2 }}"
module = llvm().parse_assembly("define i64 @burst(i64 %a, i64 %b, i64 %c, i64 %d) {{ ret i64 1 }}")
code = machine_code._target(0).emit_object(module)


def interrupt(frame, event, argument):
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if event == "line" and {line!r} in line and "llvmlite" in frame.f_code.co_filename:
        raise KeyboardInterrupt
    return interrupt


sys.settrace(interrupt)
try:
    machine_code._link_kernel(module, "own", KERNEL, "kernel")
    machine_code.load_burst([code])
except KeyboardInterrupt:
    print("interrupted")
sys.settrace(None)
del module
gc.collect()
"""


@pytest.mark.parametrize("line", ["src.detach()", "target_machine._owned = True"])
def test_an_interrupt_behind_a_call_that_takes_a_module_ends_no_process(line):
    ran = subprocess.run([sys.executable, "-c", CODE.format(line=line)], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "interrupted\n"), ran.stderr
