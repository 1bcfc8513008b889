"""Own code in a run: recorded by its path, imported again only if its package is trusted."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import FunctionHook
from sigma_kernel import Environment, every, functions as f
from sigma_kernel.contracts import Optimisation
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError, SigmaWarning
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.own import import_object
from sigma_kernel.plugins.paths import path_of
from sigma_layers import Dense, Function, Input, Output, SquaredDifference
from sigma_optimisers import Adam
from sigma_run import load
from sigma_run.launcher.group import main

CODE = """
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field
from attrs.validators import instance_of

from sigma_kernel import TimeStep, every, functions as f
from sigma_kernel.contracts import CostLayer, Dataset, Hook, Initialiser, Layer
from sigma_kernel.graph import Spec

Path({mark!r}).touch()


@define(eq=False)
class Swish(Layer):
    scale: float = 1.0

    def forward(self, context, x):
        return x * f.sigmoid(x * self.scale)


@define(eq=False)
class Absolute(CostLayer):
    def forward(self, context, output, targets):
        return f.mean(f.abs(output - targets))


@define(eq=False, kw_only=True)
class Counts(Hook):
    every: TimeStep = every(1, "epoch")
    start: int = 0
    until: Any = field(default=None, validator=instance_of((TimeStep, type(None))))

    def fire(self, context):
        context.memory["count"] = context.memory.get("count", self.start) + 1


@define
class Sevenths(Initialiser):
    def values(self, address, parameter, draws):
        return np.full(parameter.shape, 1 / 7)


@define(eq=False)
class Line(Dataset):
    rows_: int = field(default=20, alias="rows")

    @property
    def sections(self):
        return {{"inputs": Spec((1,), "float64"), "targets": Spec((1,), "float64")}}

    blocks = 1

    def rows(self, block):
        return self.rows_

    def block(self, block):
        x = np.linspace(-1, 1, self.rows_)[:, None]
        return {{"inputs": x, "targets": 3 * x}}


LINE = Line(30)


def twice(x):
    return 2 * x
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a package of somebody's own code; importing it leaves a mark."""
    folder = tmp_path / "code" / "acme_own"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "parts.py").write_text(CODE.format(mark=str(tmp_path / "imported")))
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    invalidate_caches()
    yield import_module("acme_own.parts")
    for name in ("acme_own.parts", "acme_own"):
        sys.modules.pop(name, None)


def trained(folder: Path, own: Any, **settings: Any) -> tuple[Path, Any]:
    chosen = {
        "network": Input(1) + Dense(4, activation=own.twice) + own.Swish(scale=0.5) + Function(own.twice) + Output(1)
        + own.Absolute(),
        "data": own.Line(rows=12), "hooks": {"counts": own.Counts(start=3)}, "optimiser": Adam(0.05), "epochs": 2,
        "initialisers": ("**.weights", own.Sevenths()),
    }  # fmt: skip
    with Environment("own", folder=folder) as environment:
        trainer = environment.create_trainer(**{**chosen, **settings})
        environment.run()
        assert environment.run_folder is not None
        return environment.run_folder, trainer.predict(np.ones((2, 1)))


def test_own_layers_costs_hooks_initialisers_functions_and_data_are_opened_once_trusted(
    own: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, predictions = trained(tmp_path, own)
    text = (folder / "config.toml").read_text()
    for written in ('python("acme_own.parts:Swish", 0.5)', '{"python": "acme_own.parts:twice"}', "acme_own.parts:Line"):
        assert written in text
    with pytest.raises(SigmaConfigError) as refused:
        load(folder)
    for name in ("Line", "twice", "Counts", "Sevenths"):
        assert f"python 'acme_own.parts:{name}': is code that no plugin offers, and it is not" in str(refused.value)
    assert "pass --trust acme_own, or trust=['acme_own'] to load; if it is not installed, PYTHONPATH must" in str(
        refused.value
    )
    np.testing.assert_array_equal(load(folder, trust=["acme_own"]).predict(np.ones((2, 1))), predictions)
    np.testing.assert_array_equal(load(folder, trust="acme_own").predict(np.ones((2, 1))), predictions)
    assert load(folder, trust=["acme_own.parts"]).evaluate("training")["loss"] > 0
    for command in (
        ["evaluate", "--on", "training", folder],
        ["check", folder / "config.toml"],
        ["replay", "--check", folder],
    ):
        arguments = [str(one) for one in command]
        assert main(arguments) == 2
        assert main([*arguments, "--trust", "acme_own"]) == 0
    assert main(["resume", str(folder), "--epochs", "3", "--trust", "acme_own"]) == 0
    assert "acme_own.parts:Line" in (folder / "config.toml").read_text()
    assert main(["evaluate", str(folder)]) == 2  # trust ends with the command


def test_data_of_ones_own_code_are_divided_again_when_their_run_is_opened(own: Any, tmp_path: Path) -> None:
    share = {"split": {"training": 0.5, "validation": 0.5}, "split_by": "block"}
    folder, _ = trained(tmp_path, own, validation_split=share)
    model, whole = load(folder, trust=["acme_own"]), np.linspace(-1, 1, 12)[:, None]
    assert model.evaluate() == model.evaluate((whole[6:], 3 * whole[6:]))
    assert model.evaluate("training") == model.evaluate((whole[:6], 3 * whole[:6]))
    for command in (["evaluate"], ["resume", "--epochs", "3"], ["replay", "--check"]):
        assert main([*command, str(folder), "--trust", "acme_own"]) == 0
    file = (folder / "config.toml").read_text()
    (tmp_path / "wrong.toml").write_text(file.replace("training = 0.5", "training = 1.5"))
    assert main(["check", str(tmp_path / "wrong.toml"), "--trust", "acme_own"]) == 2


COMPONENTS = """
from attrs import define, field
import numpy as np
from sigma_backend_numpy import NumpyBackend
from sigma_kernel import functions as f
from sigma_kernel.contracts import Iterator, Merger, Metric, Modifier, Preprocessor, Schedule, Transform
from sigma_operator_local import LocalOperator
from sigma_optimisers import GradientDescent


@define(eq=False, kw_only=True)
class Slowly(LocalOperator):
    note: int = 0


class Reference(NumpyBackend):
    pass


@define(eq=False)
class Descent(GradientDescent):
    pass


@define
class Halves(Schedule):
    by: float = 0.5

    def factors(self, iterations, epochs):
        return self.by**iterations


@define(eq=False)
class Shrink(Modifier):
    def modify(self, parameter, settings):
        return parameter * 0.99


@define(eq=False)
class Flip(Transform):
    def apply(self, gradients, objective, owner):
        return {name: -gradient for name, gradient in gradients.items()}


@define
class Total(Merger):
    def merge(self, parts, weights, address):
        return sum(parts[1:], parts[0])


@define
class Backwards(Iterator):
    def indices(self, seed, epoch, block, rows):
        return np.arange(rows)[::-1]


@define
class Doubled(Preprocessor):
    section: str = "inputs"

    def fit(self, blocks):
        return {}

    def apply(self, values, state):
        return 2 * values


@define
class Off(Metric):
    def totals(self, prediction, targets):
        return f.sum(f.abs(prediction - targets))
"""
OWN_PARTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "Slowly": lambda own: {"operator": own.Slowly(note=3)},
    "Total": lambda own: {"operator": {"type": "local", "workers": 1, "shards": 2, "merger": own.Total()}},
    "Reference": lambda own: {"backend": own.Reference()},
    "Descent": lambda own: {"optimiser": own.Descent(0.05)},
    "Halves": lambda own: {"optimiser": Adam(0.05, schedules={"learning_rate": own.Halves(0.9)})},
    "Shrink": lambda own: {"optimiser": Adam(0.05, modifiers={"shrink": own.Shrink()})},
    "Flip": lambda own: {"optimiser": Adam(0.05, transforms={"flip": own.Flip()})},
    "Backwards": lambda own: {"iterator": own.Backwards()},
    "Doubled": lambda own: {"preprocessors": {"doubled": own.Doubled()}},
    "Off": lambda own: {"metrics": {"off": own.Off()}},
    "several": lambda own: {"optimiser": None, "optimisers": {"all": Optimisation(own.Descent(0.05), match="**")}},
}


@pytest.mark.parametrize("name", OWN_PARTS)
def test_a_run_with_a_component_of_ones_own_resumes_and_replays_once_trusted(
    name: str, own: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code" / "acme_own" / "more.py").write_text(COMPONENTS)
    try:
        more = import_module("acme_own.more")
        folder, predictions = trained(tmp_path, own, **OWN_PARTS[name](more))
        assert "acme_own.more:" in (folder / "config.toml").read_text()
        np.testing.assert_array_equal(load(folder, trust="acme_own").predict(np.ones((2, 1))), predictions)
        for command in (["resume", "--epochs", "3"], ["resume", "--epochs", "4"], ["replay", "--check"]):
            assert main([*command, str(folder), "--trust", "acme_own"]) == 0, capsys.readouterr().err
        assert "acme_own.more:" in (folder / "config.toml").read_text()
    finally:
        sys.modules.pop("acme_own.more", None)


@pytest.mark.parametrize("trust", ["acme", "acme_own.part", "acme_own.parts.Swish", "parts", "acme_own:", ""])
def test_trust_is_by_the_exact_name_of_a_package_or_a_module(trust: str, own: Any) -> None:
    with pytest.raises(SigmaConfigError, match="is code that no plugin offers"):
        import_object("acme_own.parts:Swish", {trust})


def test_opening_a_strangers_file_or_run_imports_nothing(own: Any, tmp_path: Path) -> None:
    folder, _ = trained(tmp_path, own)
    (tmp_path / "imported").unlink()
    file = folder / "config.toml"
    for command in (
        ["run", file],
        ["check", file],
        ["explain", file],
        ["predict", folder, file],
        ["evaluate", folder],
        ["resume", folder],
        ["replay", folder],
    ):
        found = subprocess.run(
            [sys.executable, "-m", "sigma_run", *command], capture_output=True, text=True, cwd=tmp_path / "code"
        )
        assert found.returncode == 2
        assert "acme_own.parts:twice" in found.stderr
        assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    "path", ["acme_own.parts:Path", "acme_own.parts:np.load", "acme_own.parts:every", "acme_own.parts:f.sin"]
)
def test_a_trusted_module_does_not_vouch_for_what_it_imported(path: str, own: Any) -> None:
    with pytest.raises(SigmaConfigError, match="is code that no plugin offers"):
        import_object(path, {"acme_own"})


@pytest.mark.parametrize("path", ["acme_own.parts", ":Swish", "acme_own.parts:", "acme own:Swish", "../acme:Swish", ""])
def test_a_path_of_own_code_has_one_form(path: str) -> None:
    with pytest.raises(SigmaConfigError, match=r"must have the form 'package\.module:Object'"):
        import_object(path, {"acme_own", "acme own", ""})


@pytest.mark.parametrize(
    "path",
    [
        "os:system",
        "builtins:eval",
        "sigma_kernel.functions:builtins.eval",
        "sigma_kernel.functions:math",
        "sigma_kernel.functions:rewriting.rewrite",
        "sigma_kernel.environment:Environment",
    ],
)
def test_only_functions_of_the_graph_need_no_trust(path: str) -> None:
    assert import_object("sigma_kernel.functions:sin", ()) is f.sin
    with pytest.raises(SigmaConfigError, match="is code that no plugin offers"):
        import_object(path, ())


def test_a_trusted_object_that_is_missing_or_fails_is_an_error_with_a_remedy(own: Any, tmp_path: Path) -> None:
    with pytest.raises(SigmaPluginError, match="cannot be imported .*Put the directory of its package on PYTHONPATH"):
        import_object("acme_own.parts:Missing", {"acme_own"})
    with pytest.raises(SigmaPluginError, match="No module named 'acme_other'"):
        import_object("acme_other:Thing", {"acme_other"})
    (tmp_path / "code" / "acme_own" / "ends.py").write_text("raise SystemExit(3)")
    with pytest.raises(SigmaPluginError, match="cannot be imported"):
        import_object("acme_own.ends:Thing", {"acme_own"})


def test_own_code_in_a_slot_must_fulfil_its_contract(
    own: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = trained(tmp_path, own)
    file = folder / "config.toml"
    file.write_text(file.read_text().replace("acme_own.parts:Counts", "acme_own.parts:Line"))
    assert main(["check", str(file), "--trust", "acme_own"]) == 2
    assert "hooks.counts.python: must be of type Hook (got 'acme_own.parts:Line')" in capsys.readouterr().err


def test_tables_name_own_code_from_python_too_and_need_trust_there(own: Any, tmp_path: Path) -> None:
    table = {"counts": {"python": "acme_own.parts:Counts", "start": 5}}
    with pytest.raises(SigmaConfigError, match="is code that no plugin offers"):
        trained(tmp_path, own, hooks=table)
    with Environment("own", catalogue=catalogue().trusting(["acme_own"])) as environment:
        trainer = environment.create_trainer(
            network=Input(1) + Output(1) + SquaredDifference(), data=own.LINE, optimiser="adam", hooks=table, epochs=2
        )
        environment.run()
        environment.attach("more", {"python": "acme_own.parts:Counts"})
        assert trainer.session.state.memory["counts"]["hook"] == {"count": 7}
        assert type(trainer.session.setup.order.hooks["more"]) is own.Counts


@pytest.mark.parametrize("way", ["fit", "run", "run_async"])
def test_what_cannot_be_written_is_a_warning_once_at_the_line_of_the_caller(way: str, own: Any, tmp_path: Path) -> None:
    with Environment("unwritten", folder=tmp_path) as made:
        hooks = {"mine": FunctionHook(lambda context: None)}
        network = Input(1) + Output(1) + SquaredDifference()
        trainer = made.create_trainer(network=network, data=own.LINE, optimiser="adam", epochs=9, hooks=hooks)
        ways = {
            "fit": lambda: trainer.fit(epochs=1, progress=True), "run": lambda: made.run(progress=True),
            "run_async": lambda: made.run_async(progress=False).result(),
        }  # fmt: skip
        with pytest.warns(SigmaWarning, match="cannot be opened from its folder later.*trainer.hooks.mine") as told:
            ways[way]()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trainer.fit(epochs=1)
        assert [one.filename for one in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained(tmp_path / "written", own)
        without = Environment("none").create_trainer(network=network, data=own.LINE, optimiser="adam", hooks=hooks)
        without.fit(epochs=1)  # writes nothing


# -- what cannot be written --------------------------------------------------------------------------------------------
def test_what_cannot_be_written_is_named_when_the_run_begins_and_when_it_is_opened(own: Any, tmp_path: Path) -> None:
    def local(context: Any) -> None:
        pass

    network = Input(1) + Dense(2) + Function(lambda x: x * x) + Output(1) + SquaredDifference()
    with Environment("unwritten", folder=tmp_path) as environment:
        environment.create_trainer(
            network=network, data=own.LINE, optimiser="adam", epochs=1, hooks={"mine": FunctionHook(local)}
        )
        with pytest.warns(SigmaWarning) as told:
            summary = environment.run()
        ((said, place),) = ((str(one.message), one.filename) for one in told)
        assert place == __file__
        assert not environment.messages.entries_after(0)
        folder = environment.run_folder
    assert summary.status == "finished"
    assert said.count("cannot be imported by a name: it is defined in a script, a notebook or a function.") == 2
    for place in ("trainer.network: ", "trainer.hooks.mine: ", "<lambda>", "local"):
        assert place in said
    assert folder is not None
    with pytest.raises(SigmaConfigError, match=r"some settings of this run could not be written: .*<lambda>") as found:
        load(folder)
    assert "Environment.resume(RUN)" in str(found.value)


def test_a_setting_that_its_validator_would_refuse_as_it_is_written_is_named(own: Any, tmp_path: Path) -> None:
    network = Input(1) + Output(1) + SquaredDifference()
    with Environment("unwritten", folder=tmp_path) as environment:
        hooks = {"mine": own.Counts(until=every(2, "epoch"))}  # text in a file, as its type does not say what it is
        environment.create_trainer(network=network, data=own.LINE, optimiser="adam", epochs=1, hooks=hooks)
        with pytest.warns(SigmaWarning, match="trainer.hooks.mine: until: must be <class"):
            environment.run()


PLAIN = """
from attrs import define
from sigma_kernel.contracts import Layer
from sigma_hooks import FunctionHook

class Gain(Layer):
    factor = 1.0
    def forward(self, context, x):
        return x * self.factor

class Torch(Layer):
    def __init__(self, factor):
        self.factor = factor
    def forward(self, context, x):
        return x * self.factor

class Hidden(Layer):
    def __init__(self, factor):
        self.kept = factor
    def forward(self, context, x):
        return x * self.kept
"""


@pytest.mark.parametrize(("name", "kept"), [("Gain", "factor"), ("Torch", "factor"), ("Hidden", "factor")])
def test_settings_that_are_no_fields_are_trained_with_and_named_as_unwritten(
    name: str, kept: str, own: Any, tmp_path: Path
) -> None:
    (tmp_path / "acme_plain.py").write_text(PLAIN)
    sys.path.insert(0, str(tmp_path))
    try:
        plain = import_module("acme_plain")
    finally:
        sys.path.remove(str(tmp_path))
    layer = getattr(plain, name)(*([] if name == "Gain" else [5.0]))
    if name == "Gain":
        layer.factor = 5.0
    with Environment("plain", folder=tmp_path) as environment:
        network = Input(1) + layer + Output(1) + SquaredDifference()
        environment.create_trainer(network=network, data=own.LINE, optimiser="adam", epochs=1)
        with pytest.warns(SigmaWarning) as told:
            environment.run()
        (said,) = (str(one.message) for one in told)
        folder = environment.run_folder
    assert f"trainer.network: {name}" in said
    assert repr(kept) in said or f"({kept})" in said
    assert "`attrs.define(eq=False)`" in said or "`define(eq=False)`" in said
    with pytest.raises(SigmaConfigError, match="could not be written"):
        load(folder)


def test_a_class_of_a_script_cannot_be_written(tmp_path: Path) -> None:
    script = CODE.format(mark=str(tmp_path / "imported")) + (
        "\nfrom sigma_kernel.plugins.paths import path_of\nprint(path_of(Swish), path_of(twice), path_of(LINE))\n"
    )
    (tmp_path / "script.py").write_text(script)
    found = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=True)
    assert found.stdout == "None None None\n"


def test_paths_lead_to_classes_functions_and_objects_of_modules(own: Any) -> None:
    found = [path_of(thing) for thing in (own.Swish, own.twice, own.LINE, own.Line(1), f.sin, lambda: 0, 3)]
    paths = ["acme_own.parts:Swish", "acme_own.parts:twice", "acme_own.parts:LINE"]
    assert found == [*paths, None, "sigma_kernel.functions:sin", None, None]
