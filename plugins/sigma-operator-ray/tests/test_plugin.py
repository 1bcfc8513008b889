from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from sigma_kernel import SigmaConfigError
from sigma_operator_ray import RayOperator, engine, plugin
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin


def test_ray_is_imported_by_its_first_use() -> None:
    code = "import sys; from sigma_operator_ray import RayOperator; RayOperator(workers=1); print('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SigmaConfigError, match=r"operator 'ray': Ray cannot be imported .*pip install 'ray>=2.60,<3'"):
        RayOperator().connect()


def describe(text: str) -> tuple[str, bool]:
    error = engine.import_ray().exceptions.ActorDiedError()
    error.error_msg = text
    return engine.describe_failure(error)


def test_what_ends_an_actor_is_told_in_words() -> None:
    text = "The actor died.\nThe actor is dead because {}"
    for words, reason in engine.DEATHS.items():
        assert describe(text.format(words)) == (reason, False)
    assert describe(text.format("it is  old.")) == ("it is old.", False)


def test_a_node_without_the_plugin_ends_the_run_with_the_remedy() -> None:
    reason, is_final = describe("an error was raised in its creation task: No module named 'sigma_operator_ray'")
    assert is_final
    assert "Install sigma-operator-ray, and the plugins of the run, on all nodes." in reason
    assert engine.describe_failure(engine.import_ray().exceptions.RuntimeEnvSetupError("no wheel"))[1]
