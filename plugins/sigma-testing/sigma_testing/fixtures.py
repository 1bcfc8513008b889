"""Fixtures that tests of several distributions use: plugins that a test installs, and the command ``sigma``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

from sigma_kernel.plugins import catalogue as plugins, discovery
from sigma_kernel.plugins.discovery import Plugin

PLUGIN = """
from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

@hookimpl
def sigma_components():
    return [{components}]
"""


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive() -> Iterator[None]:
    """Let Ctrl-C reach the tests if a shell started them in the background, where processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fresh_catalogue() -> Iterator[None]:
    """Discover plugins again for this test and after it."""
    plugins._catalogue.cache_clear()
    yield
    plugins._catalogue.cache_clear()


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_catalogue: None) -> Callable[..., Plugin]:
    """Return a function that installs a distribution with a plugin, and returns it as the kernel discovers it.

    ``components`` are written as the arguments of Component; ``text`` replaces the whole plugin module;
    ``requires`` are its requirements, ``commands`` those that its metadata declares, by name; other arguments are
    further modules of the package.
    """

    def install(
        name: str,
        *components: str,
        text: str | None = None,
        version: str = "1.2",
        requires: Sequence[str] = (),
        commands: Mapping[str, str] = {},
        **modules: str,
    ) -> Plugin:
        folder, package = tmp_path / name, name.replace("-", "_")
        files = {module: dedent(source) for module, source in modules.items()}
        files["plugin"] = PLUGIN.format(components=", ".join(f"Component({component})" for component in components))
        if text is not None:
            files["plugin"] = dedent(text)
        for file, source in {"__init__": "", **files}.items():
            _write(folder / package / f"{file}.py", source)
            monkeypatch.delitem(sys.modules, f"{package}.{file}", raising=False)
        monkeypatch.delitem(sys.modules, package, raising=False)
        about = [f"Name: {name}", f"Version: {version}", f"Summary: Things of {name}"]
        about += [f"Requires-Dist: {requirement}" for requirement in requires]
        _write(folder / f"{package}-{version}.dist-info" / "METADATA", "\n".join(about) + "\n")
        entries = ["[sigma_kernel.plugins]", f"plugin = {package}.plugin", "[sigma_kernel.verbs]"]
        entries += [f"{command} = {path}" for command, path in commands.items()]
        _write(folder / f"{package}-{version}.dist-info" / "entry_points.txt", "\n".join(entries))
        monkeypatch.syspath_prepend(folder)
        plugins._catalogue.cache_clear()
        return next(plugin for plugin in discovery.find() if plugin.name == name)

    return install


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def sigma(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command in an empty folder, and returns its exit code and output."""
    main = import_module("sigma_run.launcher.group").main  # not every room that uses these fixtures has it
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        code: int = main(list(map(str, arguments)))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run
