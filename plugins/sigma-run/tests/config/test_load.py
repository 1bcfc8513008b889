"""Valid configurations, and the errors for invalid ones."""

# ruff: noqa: E501
from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from attrs import define, field, make_class

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, Schedule
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_kernel.plugins.components import KINDS
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.plugins.resolver import Resolver
from sigma_kernel.plugins.rooms import install
from sigma_kernel.settings import ge, phrase
from sigma_kernel.settings.mistakes import Fragment, Wrong, format_path
from sigma_run import config
from sigma_run.config.loading import FileLoader

TEXT = '''format = 1

[run]
name = "small"
seed = 3

[data]
dataset = "table"
columns = [1, 2]
batch_size = 10

[data.preprocessors.middle]
type = "centre"

[network]
architecture = """
input(4) + dense(3)
+ dense(2) + cost()
"""

[initialisers.weights]
match = "**.weights"
type = "normal"
deviation = 0.1

[trainer.optimiser]
type = "descent"
learning_rate = 0.5
schedules.learning_rate = { type = "halve", interval = "2 epochs" }

[hooks.score]
type = "score"
every = "1 epoch"
when = "epoch reaches 2"

[monitors.eye]
type = "watch"
'''


@pytest.fixture
def load(shelf):
    """Return a function that loads a text with the test catalogue."""
    return lambda text, *overrides: config.load(text, overrides, catalogue=shelf, name="f.toml")


@pytest.fixture
def errors(load):
    """Return a function that loads an invalid text, and returns the lines of the error."""

    def fail(text, *overrides, exception=SigmaConfigError):
        with pytest.raises(exception) as error:
            load(text, *overrides)
        return str(error.value).split("\n")

    return fail


def line(text, start):
    return next(i for i, row in enumerate(text.split("\n"), 1) if row.startswith(start))


def changed(old, new):
    assert old in TEXT
    return TEXT.replace(old, new)


# -- valid configurations ----------------------------------------------------------------------------------------------
def test_every_component_of_a_file_is_resolved_with_its_defaults(load):
    found = load(TEXT)
    trainer = found.trainers["trainer"]
    assert (found.run.name, found.run.seed, found.run.precision) == ("small", 3, "float32")
    assert found.run.backend.name == "acme:numpy"
    assert trainer.data.dataset.settings["columns"] == (1, 2)
    assert trainer.data.dataset.settings["scale"] == 1.0
    assert trainer.data.batch_size == 10
    assert trainer.initialisers["weights"].match == "**.weights"
    assert trainer.optimiser.make().learning_rate == 0.5
    assert str(trainer.optimiser.make().schedules["learning_rate"].interval) == "every 2 epochs"
    assert str(trainer.hooks["score"].make().when) == "epoch reaches 2"
    assert found.monitors["eye"].make().port == 80
    assert trainer.network.architecture == "acme:input(4) + acme:dense(3) + acme:dense(2) + acme:cost()"


def test_a_name_and_a_table_select_the_same_component(load):
    short = changed('[monitors.eye]\ntype = "watch"\n', '[monitors]\neye = "acme:watch"\n')
    assert load(short) == load(TEXT)
    table = changed('dataset = "table"\ncolumns = [1, 2]\n', 'dataset = { type = "table", columns = [1, 2] }\n')
    assert load(table) == load(TEXT)


def test_components_nest_in_lists_and_tables(load):
    sources = 'sources = [{ type = "file", path = "a.csv" }, { type = "acme:file", path = "b.csv" }]'
    dataset = load(changed("columns = [1, 2]", sources)).trainers["trainer"].data.dataset.make()
    assert [source.path.name for source in dataset.sources] == ["a.csv", "b.csv"]


def test_several_trainers_have_separate_tables(load):
    text = """
        format = 1
        [trainers.a]
        optimiser = "descent"
        backend = { type = "plain", device = 2 }
        [trainers.a.data]
        dataset = "table"
        [trainers.a.network]
        architecture = "input()"
        [trainers.b]
        optimiser = "descent"
        data.dataset = "table"
        network.architecture = "input()"
        hooks.score = { type = "score", every = "1 epoch" }
    """
    found = load(text)
    assert list(found.trainers) == ["a", "b"]
    assert found.trainers["a"].backend.make().device == 2
    assert found.trainers["b"].backend is None
    assert load(config.resolved_toml(found)) == found


def test_a_trainers_backend_overrides_that_of_the_run(load, shelf):
    text = changed("[trainer.optimiser]", "[trainer]\nbackend = { type = 'plain', device = 2 }\n[trainer.optimiser]")
    with config.build(load(text), shelf) as environment:
        assert environment.trainers["trainer"].backend.device == 2
        assert environment.trainers["trainer"].operator.workers == 1
    with config.build(load(TEXT), shelf) as environment:
        assert environment.trainers["trainer"].backend.device == 0
        assert environment.monitors["eye"].port == 80


def test_the_resolved_configuration_is_equivalent_and_names_every_distribution(load):
    found = load(TEXT, "data.iterator=backwards", "data.folder=some/where")
    text = config.resolved_toml(found)
    assert load(text) == found
    assert config.resolved_toml(load(text)) == text
    assert 'type = "acme:descent"' in text
    assert "momentum = 0.0" in text
    assert not re.search(r'(type|dataset|backend|operator) = "(?!acme:)', text)


def test_different_settings_give_a_different_configuration(load):
    assert load(TEXT, "hooks.score.top=2") != load(TEXT)
    assert load(TEXT, "hooks.score.top=1") == load(TEXT)


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "start", "message"),
    [
        ("seed = 3", 'seed = "banana"', "seed", "run.seed: must be a whole number (got 'banana')"),
        ("seed = 3", "seed = -3", "seed", "run.seed: must be at least 0 (got -3)."),
        ("seed = 3", "seed = true", "seed", "run.seed: must be a whole number (got true)"),
        ("seed = 3", "sead = 3", "sead", "run: has no setting 'sead'. Did you mean 'seed'?"),
        ('name = "small"', 'name = "a/b"', "name", "run.name: must be a name of letters, digits, - and _ (got 'a/b')."),
        ("seed = 3", 'precision = "float23"', "precision",
         "run.precision: must be 'float32' or 'float64' or 'mixed' or 'mixed_bfloat16' or 'mixed_float16' or 'float16' or "
         "'bfloat16' (got 'float23'). Did you mean 'float32'?"),
        ("seed = 3", 'backend = "nump"', "backend", "run.backend: backend 'nump': no plugin offers it. Did you mean 'numpy'?"),
        ("seed = 3", "backend = 3", "backend", "run.backend: must be a backend: its name, or a table with its `type` (got 3)"),
        ("batch_size = 10", "batch_size = 0", "batch_size", "data.batch_size: must be at least 1 (got 0)."),
        ("batch_size = 10", "batch_sise = 10", "batch_sise", "data: has no setting 'batch_sise'. Did you mean 'batch_size'?"),
        ("batch_size = 10", "folde = 'x'", "folde", "data: has no setting 'folde'. Did you mean 'folder'?"),
        ("columns = [1, 2]", "columns = 1", "columns", "data.columns: must be a list (got 1)"),
        ("columns = [1, 2]", "columns = [1,\n 'x']", " 'x'", "data.columns[1]: must be a whole number (got 'x')"),
        ("columns = [1, 2]", "ends = [1.0]", "ends", "data.ends: must be a list of 2 values (got [1.0])"),
        ("columns = [1, 2]", "ends = [1.0, 'x']", "ends", "data.ends[1]: must be a number (got 'x')"),
        ("columns = [1, 2]", "iterator = { type = 'backwards', x = 1 }", "iterator", "data.iterator: has no setting 'x'. It has none."),
        ('dataset = "table"', 'dataset = "tabel"', "dataset", "data.dataset: dataset 'tabel': no plugin offers it. Did you mean 'table'?"),
        ("columns = [1, 2]", "mode = 'fats'", "mode", "data.mode: must be 'fast' or 'slow' (got 'fats'). Did you mean 'fast'?"),
        ("columns = [1, 2]", "split.training = 'half'", "split", "data.split.training: must be a number (got 'half')"),
        ("columns = [1, 2]", "header = 1", "header", "data.header: must be true or false (got 1)"),
        ("columns = [1, 2]", "scale = 13.0", "dataset", "data.dataset: thirteen is not served here"),
        ("columns = [1, 2]", "last_batch = 'kep'", "last", "data.last_batch: must be 'keep' or 'drop' (got 'kep'). Did you mean 'keep'?"),
        ('dataset = "table"', 'dataset = { type = "tabel" }', "dataset",
         "data.dataset.type: dataset 'tabel': no plugin offers it. Did you mean 'table'?"),
        ('dataset = "table"', 'dataset = { type = "table", columns = [2] }', "columns", "data.columns: is given twice, here and in `dataset`."),
        ("learning_rate = 0.5", "learning_rate = 'banana'", "learning_rate",
         "trainer.optimiser.learning_rate: must be a number (got 'banana')"),
        ("learning_rate = 0.5", "learning_rate = -0.5", "learning_rate",
         "trainer.optimiser.learning_rate: must be at least 0 (got -0.5)."),
        ("learning_rate = 0.5", "learning_rat = 0.5", "learning_rat ",
         "trainer.optimiser: has no setting 'learning_rat'. Did you mean 'learning_rate'?"),
        ('interval = "2 epochs"', "interval = 2", "schedules",
         "trainer.optimiser.schedules.learning_rate.interval: must be a time step such as \"1 epoch\" (got 2)"),
        ("deviation = 0.1", "", "[initialisers.weights]", "initialisers.weights.deviation: is missing. Give it a number. "
         "See `sigma components initialiser normal`."),
        ("deviation = 0.1", "deviation = -1", "deviation", "initialisers.weights.deviation: must be at least 0 (got -1.0)"),
        ('match = "**.weights"\n', "", "[initialisers.weights]", "initialisers.weights.match: is missing. Give it a string."),
        ('every = "1 epoch"\n', "", "[hooks.score]",
         'hooks.score.every: is missing. Give it a time step such as "1 epoch". See `sigma components hook score`.'),
        ('when = "epoch reaches 2"', "when = 2", "when",
         'hooks.score.when: must be a criterion such as "epoch reaches 10" (got 2)'),
        ('type = "score"', "top = 1", "[hooks.score]",
         "hooks.score.type: is missing. Give it the name of a hook; `sigma components hook` lists them."),
        ("[hooks.score]", '[hooks."a.b"]', '[hooks."a.b"]', "hooks.a.b: must be a name of letters, digits, - and _ (got 'a.b')."),
        ("[monitors.eye]", "[monitor.eye]", "[monitor.eye]", "has no setting 'monitor'. Did you mean 'monitors'?"),
        ("format = 1", "format = true", "format", "format: must be 1 (got true)"),
        ("format = 1", "format = 2", "format", "format: must be 1 (got 2)"),
        ("+ dense(2)", "+ dence(2)", "+ dence", "network.architecture: column 3: "),
        ("+ dense(2)", "+ dense(2", "+ dense(2", "network.architecture: column 11: "),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_location(errors, old, new, start, message):
    text = changed(old, new)
    (found,) = errors(text)
    expected = f"f.toml:{line(text, start)}: {message}"
    assert found == expected or (message.endswith(": ") and found.startswith(expected))


def test_a_time_step_without_a_unit_is_refused_with_its_position(errors):
    text = changed('every = "1 epoch"', 'every = "1"')
    (found,) = errors(text)
    assert found.startswith(f"f.toml:{line(text, 'every')}: hooks.score.every: ")


def test_a_criterion_that_cannot_be_parsed_is_refused_with_its_position(errors):
    text = changed('"epoch reaches 2"', '"epoch raeches 2"')
    (found,) = errors(text)
    assert found.startswith(f"f.toml:{line(text, 'when')}: hooks.score.when: ")


def test_all_mistakes_are_reported_together_in_the_order_of_the_file(errors):
    text = changed("seed = 3", "sead = 3").replace("0.5", '"fast"').replace("+ dense(2)", "+ dense(2 3)")
    text = text.replace('"centre"', '"center"').replace('type = "watch"', 'type = "watch"\nport = "x"\nprot = 1')
    found = errors(text, "hooks.score.top=0", "data.batch_size=many")
    assert [row.split(": ")[1] for row in found if row.startswith("f.toml")] == [
        "run", "data.preprocessors.middle.type", "network.architecture", "trainer.optimiser.learning_rate",
        "monitors.eye.port", "monitors.eye",
    ]  # fmt: skip
    numbers = [int(row.split(":")[1]) for row in found if row.startswith("f.toml")]
    assert numbers == sorted(numbers)
    assert "--set data.batch_size: must be a whole number (got 'many')" in found
    assert "--set hooks.score.top: must be at least 1 (got 0)" in found


def test_missing_tables_are_named(errors):
    assert errors("") == [
        "f.toml:1: data: is missing. Give it a table.", "f.toml:1: format: is missing. Give it 1.",
        "f.toml:1: network: is missing. Give it a table.", "f.toml:1: trainer: is missing. Give it a table.",
    ]  # fmt: skip


def test_a_single_trainer_table_next_to_several_is_refused(errors):
    found = errors(TEXT + '\n[trainers.b]\noptimiser = "descent"\n')
    assert f"f.toml:{line(TEXT, '[data]')}: has no setting 'data'. It has format, run, monitors, trainers." in found


def test_a_missing_plugin_has_its_own_exit_code(errors):
    (found,) = errors(changed("seed = 3", 'backend = "numba"'), exception=SigmaPluginError)
    assert found == (
        "f.toml:5: run.backend: backend 'numba': sigma-backend-numba offers it, but is not installed. "
        f"{install('sigma-backend-numba')}"
    )


def test_a_missing_plugin_among_other_mistakes_is_a_configuration_error(errors):
    found = errors(changed("seed = 3", 'backend = "numba"\nsead = 3'))
    assert len(found) == 2


def test_python_only_components_are_refused_in_files(errors):
    (found,) = errors(changed('type = "centre"', 'type = "centre"\nsection = { a = 1 }'))
    assert found.endswith("data.preprocessors.middle.section: must be a string (got a table)")


def test_a_missing_file_is_an_error_without_a_traceback(shelf, tmp_path):
    with pytest.raises(SigmaConfigError, match=r"none\.toml: cannot be read: No such file"):
        config.load(tmp_path / "none.toml", catalogue=shelf)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SigmaConfigError, match=r"bytes\.toml: is not UTF-8"):
        config.load(tmp_path / "bytes.toml", catalogue=shelf)


def test_a_component_whose_annotations_cannot_be_resolved_is_a_broken_plugin(errors, monkeypatch, shelf):
    on, score = field(default="validation", type="NotThere"), shelf.objects["hook", "score"]
    monkeypatch.setitem(shelf.objects, ("hook", "score"), make_class("Score", {"on": on}, bases=(score,), kw_only=True))
    (found,) = errors(TEXT, exception=SigmaPluginError)
    assert found.startswith(f"f.toml:{line(TEXT, '[hooks.score]')}: hooks.score: ")
    assert "'NotThere' is not defined" in found


def test_a_component_that_does_not_implement_its_contract_is_refused(errors):
    (found,) = errors(TEXT, "trainer.optimiser.modifiers.small=shorten")
    assert found == "--set trainer.optimiser.modifiers.small: must be of type Modifier (got 'shorten')."


def test_a_component_of_the_wrong_kind_is_an_error_of_its_plugin(errors):
    (found,) = errors(TEXT, "trainer.optimiser.modifiers.small=centre", exception=SigmaPluginError)
    assert found.startswith(
        "--set trainer.optimiser.modifiers.small: modifier 'acme:centre': expected Transform or Modifier (got <class"
    )
    assert found.endswith("). Update it: python -m pip install -U acme")


def test_a_missing_setting_is_reported_with_its_options_and_the_documentation(errors):
    (found,) = errors(changed('type = "centre"', 'type = "columns"'))
    assert found.endswith(
        "data.preprocessors.middle.which: is missing. Give it a string or a whole number or a list. "
        "See `sigma components preprocessor columns`."
    )


def test_a_relative_path_is_relative_to_its_file_or_to_the_working_directory_on_the_command_line(
    shelf, tmp_path, monkeypatch
):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    text = changed("columns = [1, 2]", "sources = [{ type = 'file', path = 'a.csv' }, { type = 'file', path = '/b' }]")
    (tmp_path / "there" / "f.toml").write_text(text.replace("seed = 3", "folder = 'runs'"), encoding="utf-8")

    def paths(*overrides):
        found = config.load(Path("../there/f.toml"), overrides, catalogue=shelf)
        sources = found.trainers["trainer"].data.dataset.make().sources
        return [Path(os.path.normpath(path)) for path in (found.run.folder, *(source.path for source in sources))]

    assert paths() == [tmp_path / "there" / "runs", tmp_path / "there" / "a.csv", Path("/b")]
    here = paths("run.folder=out", "data.sources=[{ type = 'file', path = 'c.csv' }]")
    assert here == [tmp_path / "here" / "out", tmp_path / "here" / "c.csv"]


def test_an_override_of_a_missing_table_is_reported_under_its_option(errors):
    text = TEXT[: TEXT.index("[data]")] + "[trainers.a]\noptimiser = 'descent'\n"
    found = errors(text, "trainer.optimiser=descent")
    assert "--set trainer.optimiser: has no setting 'trainer'. Did you mean 'trainers'?" in found


def test_a_mistake_in_another_option_is_reported_under_its_name(load, shelf):
    document = config.override(config.parse(TEXT, "f.toml"), 'run.backend="nump"', "--backend")
    with pytest.raises(SigmaConfigError) as error:
        config.load_configuration(document, shelf)
    assert str(error.value) == "--backend: backend 'nump': no plugin offers it. Did you mean 'numpy'?"


def test_a_file_and_its_text_give_the_same_configuration(load, shelf, tmp_path):
    (tmp_path / "f.toml").write_text(TEXT, encoding="utf-8")
    assert config.load(tmp_path / "f.toml", catalogue=shelf) == load(TEXT)


def test_overrides_are_as_strict_as_the_file(errors, load):
    assert load(TEXT, "trainer.optimiser.learning_rate=0.25").trainers["trainer"].optimiser.make().learning_rate == 0.25
    assert errors(TEXT, "trainer.optimiser.learning_rate=fast") == [
        "--set trainer.optimiser.learning_rate: must be a number (got 'fast')"
    ]
    assert errors(TEXT, "trainer.optimizer=descent")[0].startswith(
        "--set trainer.optimizer: trainer: has no setting 'optimizer'. Did you mean"
    )


def test_a_comment_does_not_change_the_configuration(load):
    assert load(TEXT + "# a comment\n") == load(TEXT)


@pytest.fixture
def made(shelf, monkeypatch):
    """Offer a hook that notes each object that is made of it, and on what its validators are called; return both."""
    objects, owners = [], []

    class Noted(Hook):
        least: int = field(default=1, validator=lambda owner, attribute, value: owners.append(type(owner)))
        most: int = field(default=2, validator=ge(1))
        every: TimeStep = every(1, "epoch")

        def __attrs_post_init__(self):
            objects.append(self)

        def fire(self, context):
            return

    noted = define(Noted, eq=False, kw_only=True)
    monkeypatch.setitem(shelf.objects, ("hook", "score"), noted)
    return noted, objects, owners


NOTED = TEXT.replace('when = "epoch reaches 2"', "least = 3")


def test_a_component_of_a_file_is_made_once_and_its_validators_see_it(load, shelf, made):
    noted, objects, owners = made
    trainer = config.build(load(NOTED), shelf).trainers["trainer"]
    assert objects == [trainer.hooks["score"]]
    assert owners == [noted]


def test_two_environments_of_a_configuration_share_no_component(load, shelf, made):
    _, objects, _ = made
    configuration = load(NOTED)
    first, second = (config.build(configuration, shelf).trainers["trainer"].hooks["score"] for _ in range(2))
    assert objects == [first, second]
    assert first is not second


def test_all_mistakes_of_a_component_are_told_though_it_cannot_be_made(errors, made):
    noted, objects, owners = made
    text = NOTED.replace("least = 3", "least = 3\nmost = 0").replace('every = "1 epoch"', 'every = "often"')
    assert [found.partition(": hooks.")[2].partition(":")[0] for found in errors(text)] == ["score.every", "score.most"]
    assert objects == []
    assert owners == [noted]


def test_validators_of_a_component_see_the_components_among_its_settings(load, shelf, monkeypatch):
    seen = []
    base = shelf.objects["optimiser", "descent"]
    watched = field(
        factory=dict, type=Mapping[str, Schedule], validator=lambda owner, attribute, value: seen.append(value)
    )
    descent = make_class("Descent", {"schedules": watched}, bases=(base,), eq=False, kw_only=True)
    monkeypatch.setitem(shelf.objects, ("optimiser", "descent"), descent)
    load(TEXT)
    assert [type(schedule).__name__ for schedule in seen[0].values()] == ["Halve"]


@pytest.mark.parametrize(
    ("kind", "name", "settings", "sentence"),
    [
        ("hook", "score", {"every": "1 epoch", "top": 0}, "top: must be at least 1 (got 0)"),
        ("initialiser", "normal", {"deviation": -1.0}, "deviation: must be at least 0 (got -1.0)"),
        (
            "initialiser",
            "normal",
            {},
            "deviation: is missing. Give it a number. See `sigma components initialiser normal`.",
        ),
    ],
)
def test_a_mistake_has_the_same_sentence_in_a_file_and_in_python(shelf, kind, name, settings, sentence):
    table = {"type": name, **settings}
    with pytest.raises(Wrong) as in_file:
        FileLoader(shelf).load(table, next(contract for contract, own in KINDS.items() if own == kind))
    ((path, error),) = in_file.value.found
    assert f"{format_path(path)}: {phrase(error)}" == sentence
    with pytest.raises(SigmaConfigError) as in_python:
        Resolver(shelf)(kind, table)
    assert str(in_python.value).rstrip(".") == f"{kind}.{sentence}".rstrip(".")


def test_a_setting_is_loaded_as_what_its_converter_accepts(shelf):
    def share(value):
        return value if isinstance(value, Mapping) else {"rest": value}

    @define
    class Parts:
        plain: Mapping[str, float] = field(factory=dict, converter=share)
        split: Mapping[str, float] = field(
            kw_only=True, converter=share, metadata={"accepts": float | Mapping[str, float]}
        )

    assert FileLoader(shelf).load({"split": 0.5}, Parts).split == {"rest": 0.5}
    with pytest.raises(Wrong) as error:
        FileLoader(shelf).load({"split": "half", "plain": 0.5}, Parts)
    assert {path: phrase(one) for path, one in error.value.found} == {
        ("split",): "must be a number or a table with a name for each (got 'half')",
        ("plain",): "must be a table with a name for each (got 0.5)",
    }


def test_a_default_that_is_a_component_is_left_to_its_owner(shelf):
    halve = shelf.load("schedule", "halve")
    owner = make_class("Owner", {
        "rule": field(default=halve(every(3, "epoch")), type=Schedule),
        "size": field(default=2, type=int), "rows": field(factory=lambda: (1, 2), type=Sequence[int]),
    })  # fmt: skip
    assert FileLoader(shelf).fill(owner, {}) == {"size": 2, "rows": (1, 2)}
    table = {"type": "halve", "interval": "every 2 epochs"}
    assert Dumper(shelf).dump(FileLoader(shelf).fill(owner, {"rule": table})["rule"]) == {**table, "type": "acme:halve"}


def test_a_table_with_mistakes_raises_them_with_the_parts_that_could_be_read(shelf):
    @define
    class Inner:
        size: int
        share: float = field(validator=ge(0))

    tables = {name: field(type=Inner) for name in ("good", "bad", "low")}
    others = {"rows": field(type=Sequence[int]), "name": field(default="x", type=str)}
    inner = {"size": 1, "share": 0.5}
    table = {"good": inner, "bad": {**inner, "size": "1"}, "low": {**inner, "share": -1.0}, "rows": [1, "2", 3]}
    with pytest.raises(Wrong) as error:
        FileLoader(shelf).load(table, make_class("Outer", {**tables, **others}))
    assert {path for path, _ in error.value.found} == {("bad", "size"), ("low", "share"), ("rows", 1)}
    assert error.value.parts == {
        "good": Inner(1, 0.5), "bad": {"size": {}, "share": 0.5}, "low": {"size": 1, "share": -1.0},
        "rows": {0: 1, 1: {}, 2: 3}, "name": "x",
    }  # fmt: skip
    parts = error.value.parts
    assert [type(part) for part in (parts["bad"], parts["bad"]["size"], parts["rows"])] == [Fragment] * 3
