"""Semantic errors in configurations of the rooms' components: each has its position, and all are reported at once."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
import tomlkit

from sigma_run.launcher.group import main

TEXT = """format = 1

[run]
name = "flowers"
seed = 0

[data]
dataset = "iris"
batch_size = 10

[data.preprocessors.even]
type = "standardise"

[network]
architecture = '''
input(4) + dense(8, activation="relu")
+ output(3) + softmax_cross_entropy()
'''

[initialisers.weights]
match = "**.weights"
type = "he_normal"

[trainer.optimiser]
type = "adam"

[trainer.optimiser.settings.slow]
match = "1-dense.*"
learning_rate = 0.001

[hooks.score]
type = "accuracy"

[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""
CSV = """
[data]
dataset = "csv"
path = "four.csv"
target = "kind"
split = { training = 1.0 }
"""


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Return a function that checks TEXT after replacements, and returns the exit code and the output."""
    monkeypatch.chdir(tmp_path)

    def run(*changes, command="check", more=()):
        text = TEXT
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        Path("f.toml").write_text(text, encoding="utf-8")
        code = main([command, "f.toml", *more])
        return code, [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning")]

    return run


@pytest.fixture
def table():
    """Write a table of four rows, and return TEXT changed to read it."""
    old = TEXT[TEXT.index("[data]") : TEXT.index("[network]")]

    def write(change=("", ""), text="a,b,kind\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n"):
        Path("four.csv").write_text(text)
        return old, CSV.replace(*change) + "\n"

    return write


SMALL = ("input(4)", "input(2)")
ON = ('type = "accuracy"', 'type = "accuracy"\non = "training"')


def test_the_bundled_table_is_correct(check):
    assert check() == (0, ["ok"])


# -- one mistake -------------------------------------------------------------------------------------------------------
def test_an_unknown_plugin_that_is_preferred_is_reported_at_its_line(check):
    code, said = check(("seed = 0", 'seed = 0\nprefer = ["nope"]'))
    assert (code, said) == (2, ["f.toml:6: run.prefer: no plugin is called 'nope'. See `sigma plugins`."])


@pytest.mark.parametrize("command", ["check", "run", "explain"])
def test_a_network_without_a_cost_is_refused_before_initialisation(check, command):
    code, said = check((" + softmax_cross_entropy()", ""), command=command)
    assert (code, said) == (
        2, ["f.toml:15: network.architecture: there is no cost to minimise. End it with one, such as + "
            "softmax_cross_entropy()."],
    )  # fmt: skip
    assert os.listdir() == ["f.toml"]


def test_a_batch_larger_than_the_data_is_refused_only_if_its_size_was_set(check, table):
    assert check(table(), SMALL, ON) == (0, ["ok"])
    code, said = check(table(("[data]", "[data]\nbatch_size = 5")), SMALL, ON)
    assert code == 2
    assert said == [
        "f.toml:9: data.batch_size: a batch of 5 is larger than the data, 4 rows. Choose a smaller batch_size."
    ]


def test_a_missing_data_file_is_reported_at_its_line_of_the_configuration(check, table):
    code, said = check(table(('"four.csv"', '"five.csv"')), SMALL, ON)
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("f.toml:10: data.path: ")
    assert "five.csv: there is no such file. Did you mean 'four.csv'?" in said[0]


def test_a_missing_column_is_reported_at_its_line_of_the_configuration(check, table):
    code, said = check(table(('"kind"', '"kidn"')), SMALL, ON)
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("f.toml:11: data.target: ")
    assert "there is no column 'kidn'. Did you mean 'kind'?" in said[0]


def test_an_invalid_data_line_is_reported_with_the_path_in_the_configuration(check, table):
    change = table(text="a,b,kind\n1,2,0\n3,x,1\n")
    code, said = check(change, SMALL, ON)
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("f.toml:10: data.path: ")
    assert "four.csv:3: column 'b': 'x' is not a number." in said[0]


def test_labels_that_are_not_classes_are_reported_with_the_data_set(check):
    code, said = check(("output(3)", "output(2)"))
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("f.toml:7: data: section 'targets', row ")
    assert "not one of 2 classes" in said[0]


def test_shares_that_leave_a_split_empty_are_reported_at_their_line(check, table):
    code, said = check(table(("training = 1.0", "training = 0.95, validation = 0.05")), SMALL, ON)
    assert code == 2
    assert said[0].startswith("f.toml:12: data.split: 'validation' gets none of 4 rows")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("split = { training = 0.5, validation = 0.9 }", "split: the shares add up to 1.4."),
        ("split = { training = 0 }", "split: 'training' has a share of 0.0."),
        ("split = { test = 1.0 }", "split: there is no 'training' among test."),
        ("split = { training = 0.9, validation = 0.01 }", "split: 'validation' gets none of 4 rows"),
        ("scale = inf", "scale: must be a finite number (got inf)."),
        ("shape = [3]", "shape: "),
        ("shape = [-2]", "shape: must be at least 1 (got -2)."),
        ("inputs = []", "inputs: must not be empty."),
        ("delimiter = \"\"", "delimiter: must be one character, neither a quote nor the end of a line (got '')."),
        ("missing = \"banana\"", "missing: must be 'refuse' or 'drop' or a number (got 'banana')"),
    ],
)  # fmt: skip
def test_an_invalid_data_setting_is_a_configuration_error(check, table, setting, message):
    split = "split = { training = 1.0 }"
    change = (split, setting if "split" in setting else f"{split}\n{setting}")
    code, said = check(table(change), SMALL, ON)
    line = 12 if "split" in setting else 13
    assert (code, len(said)) == (2, 1)
    assert said[0].startswith(f"f.toml:{line}: data.{message}")


def test_a_network_larger_than_memory_is_reported_at_its_line(check):
    code, said = check(("dense(8,", "dense(1000000000000,"))
    assert (code, len(said)) == (2, 1)
    assert said[0].startswith("f.toml:15: network.architecture: 1-dense: its parameters need ")


def test_a_number_too_large_for_the_precision_is_reported_at_its_line(check):
    change = ('match = "1-dense.*"\nlearning_rate = 0.001', 'match = "1-dense.*"\nlearning_rate = 1e308')
    code, said = check(change, more=["--set", "trainer.optimiser.learning_rate=1e39"])
    assert code == 2
    assert said == [
        "--set trainer.optimiser.learning_rate: 1e+39 is too large for float32. Choose a smaller number.",
        "f.toml:29: trainer.optimiser.settings.slow.learning_rate: 1e+308 is too large for float32. "
        "Choose a smaller number.",
    ]


def test_an_override_without_a_key_is_reported(check):
    code, said = check(more=["--set", "=3"])
    assert code == 2
    assert said == ["--set =3: expected KEY=VALUE, such as trainer.optimiser.learning_rate=0.1"]


def test_an_invalid_policy_is_reported_in_plain_words(check):
    code, said = check(('when = "epoch', 'on_error = "nope"\nwhen = "epoch'))
    assert code == 2
    assert said[0].endswith("hooks.finish.on_error: must be 'fail' or 'mute' or 'ignore' (got 'nope').")


def test_the_preprocessor_that_cannot_be_fitted_is_named(check):
    code, said = check(('type = "standardise"', 'type = "one_hot"\nsection = "inputs"'))
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("f.toml:13: data.preprocessors.even.section: one_hot: section 'inputs' holds float32.")


def test_a_missing_run_for_a_warm_start_is_reported_at_its_line(check):
    code, said = check(('type = "he_normal"', 'type = "warm_start"\nrun = "runs/none"'))
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("f.toml:23: initialisers.weights.run: ")
    assert "runs/none" in said[0]


def test_a_precision_that_the_backend_lacks_is_reported_at_its_line(check):
    code, said = check(("seed = 0", 'precision = "bfloat16"'))
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("f.toml:5: run.precision: the backend has no precision 'bfloat16'. It has ")


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("learning_rate = 'fast'", "f.toml:29: trainer.optimiser.settings.slow.learning_rate: must be a finite number"),
        ("learning_rate = -1", "f.toml:29: trainer.optimiser.settings.slow.learning_rate: must be at least 0 (got -1"),
        ("frozen = 1", "f.toml:29: trainer.optimiser.settings.slow.frozen: must be true or false (got 1)"),
        ("match = 3", "f.toml:28: trainer.optimiser.settings.slow.match: has no pattern. Add match"),
        ("learning_rat = 1", "f.toml:29: trainer.optimiser.settings.slow.learning_rat: no such setting. Did you mean"),
    ],
)
def test_a_setting_of_a_rule_is_reported_under_the_users_key(check, new, message):
    old = 'match = "1-dense.*"' if new.startswith("match") else "learning_rate = 0.001"
    code, said = check((old, new))
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"**.weights"', '"1 epoch"', "f.toml:21: initialisers.weights.match: "),
        ('"1-dense.*"', '""', "f.toml:28: trainer.optimiser.settings.slow.match: "),
        (
            '"accuracy"',
            '"accuracy"\n[hooks.stop]\ntype = "early_stop"\nvalue = "1 epoch"',
            "f.toml:35: hooks.stop.value: ",
        ),
    ],
)
def test_an_invalid_address_is_refused_with_its_position(check, old, new, place):
    code, said = check((old, new))
    assert (code, len(said)) == (2, 1)
    assert said[0].startswith(place)
    assert "is not an address" in said[0]


def test_a_missing_split_is_reported_at_the_line_of_its_hook(check):
    code, said = check(('type = "accuracy"', 'type = "accuracy"\non = "tets"'))
    assert code == 2
    assert said == ["f.toml:33: hooks.score.on: the data has no split 'tets'. There are: training, validation."]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("accuracy", 'accuracy"\ntop = 9 #"', "accuracy: top = 9, but the output has 3 classes. Choose a smaller one."),
        ("accuracy", "target_maximisation",
         "target_maximisation: an input of shape (4,) is not an image. Set shape = [height, width]."),
    ],
)  # fmt: skip
def test_a_hook_that_would_fail_on_the_network_is_refused_before_training(check, old, new, message):
    for command in ("check", "run"):
        code, said = check((f'type = "{old}"', f'type = "{new}"'), command=command)
        assert (code, said) == (2, [f"f.toml:31: hooks.score: {message}"])


def test_a_failed_download_is_not_a_configuration_error(check, monkeypatch):
    monkeypatch.setenv("SIGMA_OFFLINE", "1")
    code, said = check(('dataset = "iris"', 'dataset = "mnist"\ncache = "cache"'), command="run")
    assert code == 1
    assert said[0].startswith("f.toml:8: data.dataset: ")


# -- all at once -------------------------------------------------------------------------------------------------------
ALL = [
    ("batch_size = 10", "batch_size = 1000"),
    ("input(4)", "input(5)"),
    ('"**.weights"', '"**.wights"'),
    ('match = "1-dense.*"', 'match = "7-dense.*"'),
    ("learning_rate = 0.001", "learning_rate = 'fast'"),
    ('"epoch reaches 2"', '"validation.acuracy reaches 1"'),
]
PLACES = [
    "9: data.batch_size", "15: network.architecture", "21: initialisers.weights.match",
    "28: trainer.optimiser.settings.slow.match", "29: trainer.optimiser.settings.slow.learning_rate",
    "36: hooks.finish.when",
]  # fmt: skip


def places(said):
    return [": ".join(line.removeprefix("f.toml:").split(": ")[:2]) for line in said]


def test_independent_mistakes_are_reported_together(check):
    code, said = check(*ALL)
    assert (code, places(said)) == (2, PLACES)


def test_every_layer_that_is_wrong_by_itself_is_reported_at_its_line(check):
    code, said = check(
        ("input(4) + dense(8, activation", "input(4)\n+ dens(8) + 2 * dense(1.5)\n+ dense(8, activation"),
        ('"relu"', '"swish"'), ("output(3)", "cat(mse(), units=3) + output(3, use_bias=true)"),
        ("softmax_cross_entropy()", "categorical_crossentropy()"),
        ('type = "adam"', 'type = "sgd"'),
    )  # fmt: skip
    assert code == 2
    assert said == [
        "f.toml:17: network.architecture: column 3: layer 'dens': no plugin offers it. Did you mean 'dense'?",
        "f.toml:17: network.architecture: column 17: Dense.units: must be a whole number of at least 1 (got 1.5).",
        "f.toml:18: network.architecture: column 3: activation 'swish': no plugin offers it. Sigma calls it 'silu'.",
        "f.toml:19: network.architecture: column 3: layer 'cat': no plugin offers it. Sigma calls it 'concat'.",
        "f.toml:19: network.architecture: column 7: layer 'mse': no plugin offers it. "
        "Sigma calls it 'squared_difference'.",
        "f.toml:19: network.architecture: column 25: output: has no setting 'use_bias'. Sigma calls it 'bias'.",
        "f.toml:19: network.architecture: column 52: layer 'categorical_crossentropy': no plugin offers it. "
        "Sigma calls it 'softmax_cross_entropy'.",
        "f.toml:27: trainer.optimiser.type: optimiser 'sgd': no plugin offers it. Sigma calls it 'gradient_descent'.",
    ]


def test_a_text_that_cannot_be_read_to_its_end_is_reported_with_the_layers_before(check):
    code, said = check(("dense(8,", "dens(8,"), ("output(3) +", "output(3) ++"))
    assert code == 2
    assert [line.partition(":")[2].split(":")[0] for line in said] == ["16", "17"]
    assert "layer 'dens': no plugin offers it." in said[0]
    assert "expected" in said[1]


def test_metrics_of_a_list_are_named_by_their_types(check):
    listed = TEXT[TEXT.index("[trainer.optimiser]") : TEXT.index("[hooks.score]")]
    table = '[trainer]\noptimiser = "adam"\nmetrics = ["accuracy", { type = "accuracy", top = 2 }]\n\n'
    assert check((listed, table)) == (0, ["ok"])
    code, said = check((listed, table.replace("top", "tip")))
    assert (code, places(said)) == (2, ["26: trainer.metrics[1]"])
    code, said = check((listed, table.replace('"accuracy",', '"acc",', 1)))
    assert said == ["f.toml:26: trainer.metrics[0]: metric 'acc': no plugin offers it. Sigma calls it 'accuracy'."]
    code, said = check((listed, table.replace('["accuracy", ', '["accuracy", 3, ')))
    assert said == ["f.toml:26: trainer.metrics[1]: must be a metric: its name, or a table with its `type` (got 3)"]


def test_hooks_and_monitors_need_names(check):
    hooks = TEXT[TEXT.index("[hooks.score]") :]
    _, said = check((hooks, ""), ("format = 1\n", 'format = 1\nhooks = ["accuracy"]\n'))
    assert said[0] == "f.toml:2: hooks: must be a table with a name for each (got ['accuracy'])"


def test_semantic_mistakes_are_reported_together_with_those_in_keys_and_values(check):
    code, said = check(*ALL, ("seed = 0", "sead = 0"), ('type = "adam"', 'type = "adam"\nbeta1 = 2.0'))
    found = ["5: run", *PLACES]
    found[4:6] = ["26: trainer.optimiser.beta1"]  # the rules of the optimiser are then not checked
    found[-1] = "37: hooks.finish.when"
    assert (code, places(said)) == (2, found)


def test_parts_that_depend_on_an_invalid_one_are_not_reported(check):
    code, said = check(
        ('type = "accuracy"', 'type = "acuracy"'), ('"epoch reaches 2"', '"validation.accuracy reaches 1"')
    )
    assert (code, places(said)) == (2, ["32: hooks.score.type"])
    code, said = check(('dataset = "iris"', 'dataset = "irsi"'), ("input(4)", "input(5)"))
    assert (code, places(said)) == (2, ["8: data.dataset"])


def test_nothing_is_downloaded_to_examine_an_invalid_configuration(check):
    code, said = check(
        ('dataset = "iris"', 'dataset = "mnist"\ncache = "cache"'), ("seed = 0", "sead = 0"), ("input(4)", "input(28)"),
        ('"**.weights"', '"**.wights"'), command="run",
    )  # fmt: skip
    assert (code, places(said)) == (2, ["5: run", "22: initialisers.weights.match"])
    assert not Path("cache").exists()


def test_check_reports_mistakes_even_if_the_data_is_not_downloaded(check):
    code, said = check(
        ('dataset = "iris"', 'dataset = "mnist"\ncache = "cache"'), ('"**.weights"', '"**.wights"'),
        (" + softmax_cross_entropy()", ""),
    )  # fmt: skip
    assert (code, places(said)) == (2, ["16: network.architecture", "22: initialisers.weights.match"])


def test_each_of_several_trainers_has_its_own_source_positions(check, tmp_path, capsys):
    tables = TEXT.partition("[data]")[2]
    tables = "[data]" + tables
    for name in ("data", "network", "initialisers", "hooks"):
        tables = tables.replace(f"[{name}", f"[trainers.a.{name}")
    tables = tables.replace("[trainer.", "[trainers.a.").replace("**.weights", "**.wights").replace("0.001", "'fast'")
    Path("two.toml").write_text(f"format = 1\n{tables}")
    assert main(["check", "two.toml", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["errors"]
    assert [error.split(": ")[1] for error in found] == [
        "trainers.a.initialisers.weights.match", "trainers.a.optimiser.settings.slow.learning_rate",
    ]  # fmt: skip


PAGE = (Path(__file__).parents[4] / "docs" / "configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_one_of_several_trainers_that_lacks_an_optimiser_is_examined(tmp_path, capsys):
    tables = "[trainers.a]\nepochs = 1\n[trainers.a.data]\ndataset = 'iris'\n[trainers.a.network]\n"
    tables += "architecture = 'input(5) + output(3) + softmax_cross_entropy()'\n"
    (tmp_path / "file.toml").write_text(f"format = 1\n{tables}")
    assert main(["check", str(tmp_path / "file.toml")]) == 2
    said = capsys.readouterr().err
    assert "trainers.a.optimiser: is missing. Give it an optimiser" in said
    assert "trainers.a.network.architecture: " in said  # the other parts are examined, too


FRAGMENTS = [text for text in EXAMPLES if text.startswith("[") and "trainers." not in text]


def merged(table, other):
    """Return the tables of a file merged with those of a fragment."""
    for key, value in other.items():
        table.pop("optimiser" if key == "optimisers" else "", None)  # in place of one
        both = isinstance(value, dict) and isinstance(table.get(key), dict)
        table[key] = merged(table[key], value) if both else value
    return table


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda text: text.partition("\n")[0])
def test_each_configuration_example_trains_in_the_first_file_of_the_page(fragment, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = merged(tomllib.loads(EXAMPLES[0]), tomllib.loads(fragment))
    Path("f.toml").write_text(tomlkit.dumps(file), encoding="utf-8")
    code = main(["run", "f.toml", "--quiet", "--set", "hooks.finish.when=epoch reaches 2"])
    assert (code, capsys.readouterr().err) == (0, "")


def test_the_configuration_page_has_an_example_of_everything():
    told = (
        "split_by",
        "preprocessors",
        "settings",
        "frozen",
        "schedules",
        "transforms",
        "modifiers",
        "early_stop",
        "order",
    )
    assert [word for word in told if not any(word in text for text in FRAGMENTS)] == []


def test_the_recorded_plugins_of_a_run_are_those_that_it_used(check):
    assert check(command="run", more=["--quiet"])[0] == 0
    [folder] = Path("runs").iterdir()
    found = json.loads((folder / "plugins.json").read_text())["plugins"]
    assert {"sigma-kernel", "sigma-data", "sigma-layers", "sigma-optimisers", "sigma-backend-numpy"} <= set(found)


def test_a_section_missing_for_the_cost_is_reported_with_the_existing_ones(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("x,y\n1,0\n2,1\n")
    (tmp_path / "run.toml").write_text(RECORDS)
    assert main(["check", str(tmp_path / "run.toml")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "the network reads section 'targets'; the data has inputs" in said[0]


RECORDS = """
format = 1
[data]
batch_size = 2
split = { training = 1.0 }
[data.dataset]
type = "records"
source = { type = "file", path = "a.csv" }
reader = { type = "csv" }
[data.dataset.extractor]
type = "columns"
sections.inputs = { columns = ["x"] }
[network]
architecture = "input(1) + output(2) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
[hooks.end]
type = "stop"
every = "2 epochs"
"""
