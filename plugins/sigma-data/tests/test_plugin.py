from __future__ import annotations

import subprocess
import sys
from types import ModuleType

from sigma_data import plugin
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin


def test_download_libraries_are_imported_only_to_download():
    code = "import sys; from sigma_data import Mnist, Url; Mnist(); assert not {'pooch', 'requests'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
