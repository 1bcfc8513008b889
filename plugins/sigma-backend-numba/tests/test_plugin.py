from __future__ import annotations

import subprocess
import sys
from types import ModuleType

from sigma_backend_numba import plugin
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin


def test_the_backend_does_not_import_its_compiler_before_use():
    code = "import sys, sigma_backend_numba.backend; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
