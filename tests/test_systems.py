"""Where Sigma is not supported, importing it says so, before anything else fails."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sigma_kernel.systems import check_system


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 9), (2, 7, 18)])
def test_an_older_python_is_refused(version: tuple[int, ...]) -> None:
    found = ".".join(map(str, version))
    with pytest.raises(ImportError, match=f"Sigma needs Python 3.11 or newer .this is {found}.. Install it"):
        check_system(version, "linux")


@pytest.mark.parametrize("platform", ["win32", "emscripten", "wasi"])
def test_a_system_without_locks_is_refused(platform: str) -> None:
    with pytest.raises(ImportError, match=f"Sigma needs Linux or macOS .this is {platform}.. On Windows"):
        check_system((3, 11, 0), platform)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 2), (4, 0)])
def test_supported_systems_are_not(version: tuple[int, ...], platform: str) -> None:
    check_system(version, platform)


@pytest.mark.parametrize(
    ("setting", "told"), [("version_info=(3, 10, 1)", "newer (this is 3.10.1)"), ("platform='win32'", "win32")]
)
def test_importing_the_kernel_is_what_is_refused(setting: str, told: str) -> None:
    code = f"import sys; sys.{setting}; import sigma_kernel"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImportError: Sigma" in done.stderr.splitlines()[-1]
    assert told in done.stderr
