"""A child after a fork, whose parent compiles in another thread, compiles too: the compiler is at rest in it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import os, threading, time
from sigma_backend_numba.cache import lookup

def hold():
    with lookup._lock:
        held.set()
        time.sleep(0.5)

held = threading.Event()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    os._exit(0 if lookup._lock.acquire(timeout=5) else 1)
print(os.waitpid(child, 0)[1])
with lookup._lock:
    print("parent")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_has_the_lock_of_the_compiler_at_rest() -> None:
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.split() == ["0", "parent"]
