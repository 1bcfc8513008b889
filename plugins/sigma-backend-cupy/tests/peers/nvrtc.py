"""NVRTC, CUDA's compiler of kernels at run time, from its wheel: it needs no GPU."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@cache
def library() -> Any:
    """Return the library; raises RuntimeError without the wheel."""
    spec = find_spec("nvidia.cuda_nvrtc")
    found = [p for place in (spec.submodule_search_locations or () if spec else ()) for p in Path(place).glob("lib/*")]
    names = sorted(p for p in found if p.name.startswith("libnvrtc.so"))
    if not names:
        raise RuntimeError("NVRTC is not installed: python -m pip install nvidia-cuda-nvrtc-cu12")
    return ctypes.CDLL(str(names[0]))


def ptx(text: str, architecture: str) -> str:
    """Return the PTX of kernels for an architecture (``sm_90``); raises AssertionError with the compiler's words."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
    number = architecture.removeprefix("sm_")
    options = ["--std=c++17", f"--gpu-architecture=compute_{number}"]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    try:
        failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
        assert not failed, _text(program, "ProgramLog")
        return _text(program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    assert getattr(library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    room = ctypes.create_string_buffer(size.value)
    assert getattr(library(), f"nvrtcGet{what}")(program, room) == 0
    return room.value.decode()
