"""One import gives users the names of the kernel, of the default rooms, and environments of files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sigma_kernel
import sigma_layers
import sigma_ml as sm
from sigma_kernel import SigmaConfigError, SigmaPluginError
from sigma_testing import generate

ROOMS = ("data", "hooks", "initialisers", "layers", "optimisers", "text")


def test_it_has_every_name_of_the_kernel() -> None:
    assert set(sigma_kernel.__all__) < set(sm.__all__)
    assert all(getattr(sm, name) is getattr(sigma_kernel, name) for name in sigma_kernel.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_the_components_of_a_room_are_those_of_a_module(room: str) -> None:
    module, theirs = getattr(sm, room), __import__(f"sigma_{room}")
    assert dir(module) == dir(theirs)
    assert all(getattr(module, name) is getattr(theirs, name) for name in dir(theirs)[:5])


def test_importing_it_imports_no_library_and_no_room() -> None:
    heavy = "numpy", "attrs", "click", "tomlkit", "numba", "sigma_layers", "sigma_kernel.environment"
    code = f"import sys, sigma_ml; print(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_recipe_trains_with_overrides(tmp_path: Path) -> None:
    settings = ("run.backend=numpy", "hooks.finish.when=iteration reaches 3")
    with sm.from_file("iris", *settings, folder=tmp_path) as environment:
        assert environment.run().iterations == 3
        assert environment.run_folder is not None
        assert environment.run_folder.parent == tmp_path


def test_a_file_trains_like_the_recipe_that_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(sm.catalogue().load("recipe", "iris").text)  # type: ignore[attr-defined]
    digests = set()
    for what in (file, str(file), file.read_text(), "iris"):
        with sm.from_file(what, "run.backend=numpy", "hooks.finish.when=iteration reaches 3") as environment:
            digests.add(environment.run().parameters_sha256)
    assert len(digests) == 1


def test_mistakes_are_told_with_the_name_of_what_holds_them(tmp_path: Path) -> None:
    with pytest.raises(SigmaConfigError, match="trainer.epoch: .*Did you mean 'epochs'"):
        sm.from_file("iris", "trainer.epoch=3")
    with pytest.raises(SigmaConfigError, match="recipe 'irs': no plugin offers it. Did you mean 'iris'"):
        sm.from_file("irs")
    with pytest.raises(SigmaConfigError, match="there.toml"):
        sm.from_file(tmp_path / "there.toml")


def test_a_recipe_that_is_none_is_an_error_of_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sigma_kernel.plugins.catalogue.Catalogue, "load", lambda *_: "text")
    with pytest.raises(SigmaPluginError, match=r"recipe 'iris': expected a Recipe \(got 'text'\). Update its plugin."):
        sm.from_file("iris")


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "sigma_ml", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"sigma, version {sm.__version__}\n"


def test_the_stub_is_up_to_date_and_layers_are_typed_by_their_room() -> None:
    stubs = generate.stubs("sigma_ml")
    assert [path for path, text in stubs.items() if path.read_text("utf-8") != text] == []
    assert sm.layers.Dense is sigma_layers.Dense
