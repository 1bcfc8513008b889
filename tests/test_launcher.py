"""The command: fast start, one document on stdout, messages on stderr, and meaningful exit codes."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from textwrap import dedent

import click
import numpy as np
import pytest

import sigma_kernel
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.graph.node import MEANINGS, OPS
from sigma_kernel.plugins import catalogue as lookup, rooms
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_kernel.plugins.discovery import find
from sigma_kernel.plugins.specs import KINDS
from sigma_run.launcher.group import COMMANDS, GROUPS, main, sigma
from sigma_run.launcher.output import document

SCALE = '"layer", "scale_x", "acme_layers.scale:Scale", "Multiply by one number."'
GREET = '"verb", "greet", "acme_tools.greet:greet", "Say hello."'
LAYER_FILE = """
    from attrs import define, field
    from attrs.validators import ge
    from sigma_kernel import Layer

    @define(eq=False)
    class Scale(Layer):
        '''Multiply by ``factor``.  More is said here.'''

        factor: float
        times: int = 2
        words: tuple[str, ...] = ("a", "b")
        table: dict[str, float] = field(factory=lambda: {"x": 0.5})
        exact: bool = True

        def forward(self, context, x):
            return x
"""
ODD_KIND = """
    from sigma_kernel import Component, hookimpl
    SIGMA_API = "1.0"

    @hookimpl
    def sigma_components():
        return [Component("lyer", "a", "a.b:C", "d")]
"""
DECLARED = {"greet": "acme_tools.greet:greet"}
GREET_FILE = """
    import click

    @click.command()
    def greet():
        click.echo("hello")
"""


@pytest.fixture
def failing(monkeypatch):
    """Return a function that makes ``sigma recipes`` raise an error."""

    def fail(error):
        def command():
            raise error

        monkeypatch.setattr(sigma, "get_command", lambda context, name: click.Command(name, callback=command))

    return fail


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_loads_and_has_help(name, capsys):
    assert isinstance(load(COMMANDS[name]), click.Command)
    assert main([name, "--help"]) == 0
    assert "--debug" in capsys.readouterr().out


def listed(capsys, *options):
    """Return the commands that `sigma --help` lists, with the lines that say what they do."""
    assert main([*options, "--help"]) == 0
    sections = capsys.readouterr().out.partition("Commands:\n")[2]
    return dict(line.split(maxsplit=1) for line in sections.splitlines() if re.match(" {2}[a-z]+ {2}", line))


@pytest.fixture
def forgotten(monkeypatch, fresh_catalogue):
    """Return a function that lets a package count as never imported, and that gives its plugin another text."""

    def forget(package, plugin=None):
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        if plugin is not None:
            path = next(Path(one, package, "plugin.py") for one in sys.path if Path(one, package).is_dir())
            path.write_text(plugin)
        lookup._catalogue.cache_clear()

    return forget


def test_help_lists_the_kernels_commands_and_those_that_plugins_declare_without_importing_any(
    distribution, forgotten, capsys
):
    distribution("acme-tools", GREET, commands=DECLARED, greet=GREET_FILE)
    forgotten("acme_tools")
    found = listed(capsys)
    assert [*found][: len(COMMANDS)] == [*COMMANDS]
    assert found["greet"] == "Things of acme-tools"
    assert not {"acme_tools", "acme_tools.plugin"} & sys.modules.keys()


@pytest.mark.rooms
def test_help_has_a_line_for_each_command_of_the_rooms(capsys):
    by_room, found = rooms._read_rooms()["commands"], listed(capsys)
    here = {plugin.name for plugin in find()}  # not all rooms are in the default set
    of_rooms = {name: line for room in here & by_room.keys() for name, line in by_room[room].items()}
    assert {"reset", "freeze", "relabel"} <= of_rooms.keys()
    of_rooms |= by_room["sigma-monitor-control"]  # a verb comes before a live command of its name
    assert len(of_rooms) > 20
    assert {name: found.get(name) for name in of_rooms} == of_rooms


def test_help_does_not_list_commands_of_disabled_plugins_nor_twice_what_several_offer(distribution, capsys):
    for name in ("acme-tools", "rival-tools"):
        distribution(name, GREET, commands={**DECLARED, "recipes": "acme_tools.greet:greet", "A\x1b[2J": "a:b"})
    found = listed(capsys)
    assert sum(name == "greet" for name in found) == 1
    assert found["recipes"] == COMMANDS["recipes"].summary
    assert not any(name.startswith("A") for name in found)  # not the form of a name
    assert "greet" in listed(capsys, "--no-plugin", "acme-tools")
    assert "greet" not in listed(capsys, "--no-plugin", "acme-tools", "--no-plugin", "rival-tools")


@pytest.mark.parametrize("commands", [{}, DECLARED], ids=["in its record alone", "in its metadata, too"])
def test_a_command_of_a_plugin_runs_by_name_and_by_full_name(distribution, capsys, commands):
    distribution("acme-tools", GREET, commands=commands, greet=GREET_FILE)
    assert main(["greet"]) == main(["acme-tools:greet"]) == 0
    assert capsys.readouterr().out == "hello\nhello\n"


@pytest.mark.parametrize(
    "line", ["--help", "--version", "greet", "acme-tools:greet", "check --help", "plugins --help",
             "--no-plugin acme-tools --help", "--no-plugin acme-hostile greet", "--no-plugin acme-hostile run --help"],
)  # fmt: skip
def test_only_the_plugin_of_a_command_is_imported(distribution, forgotten, tmp_path, monkeypatch, line):
    """One that hangs, or ends the process, when it is imported affects only what uses it.

    ``sigma run`` has options of every plugin.
    """
    monkeypatch.chdir(tmp_path)
    distribution("acme-tools", GREET, commands=DECLARED, greet=GREET_FILE)
    distribution("acme-hostile", commands={"growl": "acme_hostile.growl:growl"})
    forgotten("acme_hostile")
    assert main(line.split()) == 0
    assert "acme_hostile" not in sys.modules


def test_what_a_plugin_prints_during_its_import_is_not_in_the_document(distribution, forgotten, capsys):
    distribution("acme-tools", GREET)
    forgotten("acme_tools", "print('Welcome to acme-tools!')\nraise RuntimeError('out of order')\n")
    assert main(["plugins", "show", "acme-tools", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["reason"] == "RuntimeError: out of order"
    assert err == "Welcome to acme-tools!\n"


def test_a_declared_command_of_a_broken_plugin_says_why_it_cannot_run(distribution, capsys):
    distribution("acme-tools", commands=DECLARED, text="raise SystemExit('out of order')")
    assert main(["greet"]) == 3
    assert capsys.readouterr().err == (
        "command 'greet': acme-tools should offer it, but is broken (SystemExit: out of order). "
        "See `sigma plugins show acme-tools`.\n"
    )
    assert main(["--no-plugin", "acme-tools", "greet"]) == 3
    assert "acme-tools offers it, but is disabled by --no-plugin" in capsys.readouterr().err


def test_a_declared_command_that_the_record_lacks_is_reported(distribution, capsys):
    distribution("acme-tools", commands=DECLARED)
    assert main(["greet"]) == 2
    assert capsys.readouterr().err.startswith("command 'greet': no plugin offers it.")


def test_a_command_that_two_plugins_declare_is_ambiguous(distribution, capsys):
    for name in ("acme-tools", "rival-tools"):
        distribution(name, GREET, commands=DECLARED)
    assert main(["greet"]) == 2
    assert "command 'greet': acme-tools and rival-tools both offer it." in capsys.readouterr().err


def test_no_plugin_names_broken_distributions_and_does_not_read_their_metadata(distribution, capsys, tmp_path):
    distribution("acme-tools", GREET, commands=DECLARED, greet=GREET_FILE)
    for broken in ("METADATA", "entry_points.txt"):
        distribution("other")
        (tmp_path / "other" / "other-1.2.dist-info" / broken).write_bytes(bytes(range(128, 256)))
        assert main(["--no-plugin", "acme-tools", "greet"]) == 3
        assert main(["greet", "--no-plugin", "not-there"]) == 3
        assert main(["greet"]) == main(["--no-plugin", "other-1.2.dist-info", "greet"]) == 0
        assert main(["plugins", "show", "other-1.2.dist-info"]) == 0
        assert main(["plugins", "show", "other-1.3.dist-info"]) == 3
        out, err = capsys.readouterr()
        assert "its metadata cannot be read: " in out
        meant = "Did you mean 'other-1.2.dist-info'?"
        assert err.splitlines()[2:] == [
            f"plugin 'other-1.3.dist-info': not installed. {meant} `sigma plugins` lists them."
        ]


def test_a_plugin_cannot_replace_a_command_of_the_kernel(distribution, capsys):
    distribution("acme-tools", GREET.replace('"greet"', '"recipes"'), greet=GREET_FILE)
    assert main(["recipes"]) == 0
    assert "hello" not in capsys.readouterr().out
    assert main(["acme-tools:recipes"]) == 0
    assert "hello" in capsys.readouterr().out


def test_an_object_that_is_not_a_command_is_reported(distribution, capsys):
    distribution("acme-tools", GREET, greet="greet = 7")
    assert main(["greet"]) == 1
    assert "command 'greet' is 7, which is not a click command" in capsys.readouterr().err


def test_a_misspelt_command_suggests_similar_names(capsys):
    assert main(["rnu"]) == 2
    assert "There is no command 'rnu'. Did you mean 'run'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "calls"),
    [("doctor", "`sigma plugins doctor`"), ("show", "`sigma data show` or `sigma plugins show`")],
)
def test_a_command_of_a_group_is_suggested_with_its_group(capsys, name, calls):
    assert main([name]) == 2
    assert f"There is no command {name!r}. Did you mean {calls}?" in capsys.readouterr().err


def test_the_groups_are_all_commands_that_have_commands():
    groups = [name for name, component in COMMANDS.items() if isinstance(load(component), click.Group)]
    assert groups == [*GROUPS]


def test_an_unknown_command_is_a_usage_error(capsys):
    assert main(["xyzzy"]) == 2
    assert "command 'xyzzy': no plugin offers it" in capsys.readouterr().err


def test_a_user_error_is_printed_as_a_sentence_with_its_exit_code(failing, capsys):
    failing(SigmaDataError("train.csv: line 7 has 3 fields, not 4. Mend the line."))
    assert main(["recipes"]) == 1
    assert capsys.readouterr() == ("", "train.csv: line 7 has 3 fields, not 4. Mend the line.\n")


def test_debug_shows_the_traceback_of_an_error(failing, capsys):
    failing(SigmaConfigError("a.toml:3: run.seed: wrong"))
    assert main(["--debug", "recipes"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("a.toml:3: run.seed: wrong\n")


def test_debug_may_be_anywhere_on_the_command_line(capsys):
    assert main(["plugins", "show", "not-there", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_memory_that_is_not_there_is_told_with_a_remedy(failing, capsys):
    failing(MemoryError("Unable to allocate 1 TiB"))
    assert main(["recipes"]) == 1
    told = "out of memory: Unable to allocate 1 TiB. Choose a smaller batch_size, shorter sequences, or"
    assert capsys.readouterr() == ("", f"{told} fewer units.\n")


def test_an_unexpected_error_is_one_line_and_advice(failing, capsys):
    failing(ZeroDivisionError("division by zero"))
    assert main(["recipes"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ZeroDivisionError: division by zero\n")
    assert "--debug" in err
    assert "Traceback" not in err


def test_an_interrupt_ends_with_130(failing):
    failing(KeyboardInterrupt())
    assert main(["recipes"]) == 130


def test_a_wrong_option_is_a_usage_error(capsys):
    assert main(["components", "--jsn"]) == 2
    assert "--jsn" in capsys.readouterr().err


def test_components_are_listed_by_kind_for_people(distribution, capsys):
    distribution("acme-layers", SCALE)
    assert main(["components", "layer"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "scale_x" in line]
    assert line.split()[:3] == ["layer", "scale_x", "acme-layers"]


@pytest.mark.parametrize(("columns", "beside"), [(80, True), (60, False)])
def test_a_table_fits_the_terminal_and_in_a_pipe_each_row_is_a_line(distribution, capsys, monkeypatch, columns, beside):
    summary = "Multiply " + "each element by one and " * 5 + "the same number."
    name = "a-rather-long-name-of-a-layer"
    distribution("acme-layers", f'"layer", {name!r}, "acme_layers.scale:Scale", {summary!r}', GREET)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["components", "layer"]) == 0
    piped = [line for line in capsys.readouterr().out.splitlines() if name in line]
    assert [line.split(maxsplit=3) for line in piped] == [["layer", name, "acme-layers", summary]]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["components", "layer"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    shown = "\n".join(lines).partition(name)[2].partition("\nlayer")[0]
    assert " ".join(shown.split()) == f"acme-layers {summary}"
    assert ("Multiply" in shown.partition("\n")[0]) is beside


def test_components_are_listed_as_one_json_document(distribution, capsys):
    distribution("acme-layers", SCALE, GREET)
    assert main(["components", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["components"]
    assert {
        "kind": "layer", "name": "scale_x", "distribution": "acme-layers", "path": "acme_layers.scale:Scale",
        "summary": "Multiply by one number.", "preference": 0, "also_known_as": "", "default_for": "",
        "formerly": "",
    } in found  # fmt: skip
    ranks = [list(KINDS).index(component["kind"]) for component in found]
    assert ranks == sorted(ranks)


def test_one_component_is_shown_with_its_settings(distribution, capsys):
    distribution("acme-layers", SCALE, scale=LAYER_FILE)
    assert main(["components", "layer", "scale_x"]) == 0
    first, _, more, _, *rows = capsys.readouterr().out.splitlines()
    assert more == "More is said here."
    assert first == "layer acme-layers:scale_x: Multiply by ``factor``."
    shown = {row.split()[0]: row.split(maxsplit=1)[1].split("  ") for row in rows if row[0] != " "}
    assert [part.strip() for part in shown["factor"] if part] == ["a number", "(required)"]
    assert [part.strip() for part in shown["times"] if part] == ["a whole number", "2"]
    assert [part.strip() for part in shown["words"] if part] == ["a list", '["a", "b"]']
    assert [part.strip() for part in shown["table"] if part] == ["a table", "{ x = 0.5 }"]
    assert [part.strip() for part in shown["exact"] if part] == ["true or false", "true"]


def test_one_component_is_shown_as_json(distribution, capsys):
    distribution("acme-layers", SCALE, scale=LAYER_FILE)
    assert main(["components", "layer", "acme-layers:scale_x", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["about"]) == ("scale_x", "Multiply by ``factor``.")
    factor, times = found["settings"][:2]
    assert (factor["name"], factor["type"], factor["required"], factor["default"]) == ("factor", "a number", True, None)
    assert (times["name"], times["type"], times["required"], times["default"]) == ("times", "a whole number", False, 2)


def test_numbers_that_are_not_finite_are_null_in_documents(capsys):
    document({"a": math.inf, "b": [1.5, (math.nan, {"c": np.float64("-inf")})]})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "a": None,
        "b": [1.5, [None, {"c": None}]],
    }


def test_showing_an_unknown_component_is_an_error(fresh_catalogue, capsys):
    assert main(["components", "layer", "never_heard_of"]) == 2
    assert "layer 'never_heard_of': no plugin offers it" in capsys.readouterr().err


def test_recipes_are_listed(distribution, capsys):
    distribution("acme-runs", '"recipe", "spirals_x", "acme_runs:SPIRALS", "Two spirals."')
    assert main(["recipes"]) == 0
    assert "spirals_x" in capsys.readouterr().out
    assert main(["recipes", "--json"]) == 0
    assert "spirals_x" in {recipe["name"] for recipe in json.loads(capsys.readouterr().out)["recipes"]}


def test_plugins_are_listed_with_their_state(distribution, capsys):
    distribution("acme-layers", SCALE)
    distribution("broken-plugin", text="import not_there_at_all")
    assert main(["plugins"]) == 0
    states = {line.split()[0]: line.split()[2] for line in capsys.readouterr().out.splitlines()}
    assert (states["acme-layers"], states["broken-plugin"]) == ("ready", "quarantined")
    assert main(["plugins", "list", "--json"]) == 0
    plugins = {plugin["name"]: plugin for plugin in json.loads(capsys.readouterr().out)["plugins"]}
    assert plugins["acme-layers"]["components"][0]["name"] == "scale_x"
    assert "not_there_at_all" in plugins["broken-plugin"]["reason"]


def test_one_plugin_is_shown_with_the_reason_why_it_is_broken(distribution, capsys):
    distribution("acme-layers", SCALE)
    distribution("broken-plugin", text="import not_there_at_all")
    assert main(["plugins", "show", "acme-layers"]) == main(["plugins", "show", "broken-plugin"]) == 0
    text = capsys.readouterr().out
    assert "scale_x" in text
    assert "broken-plugin 1.2 (quarantined)\nModuleNotFoundError" in text
    assert "Traceback" in text


def test_the_doctor_finds_broken_plugins_and_broken_components(distribution, capsys):
    distribution("acme-layers", SCALE, scale=LAYER_FILE)
    distribution("broken-plugin", text="import not_there_at_all")
    distribution("half-broken", SCALE.replace("acme_layers", "half_broken"), scale="import not_there_either")
    distribution("no-layers", SCALE.replace("acme_layers", "no_layers"), scale="class Scale: ...")
    distribution("odd-kind", text=ODD_KIND)
    assert main(["plugins", "doctor", "--json"]) == 3
    reports = {one["name"]: one["problems"] for one in json.loads(capsys.readouterr().out)["plugins"]}
    assert reports["acme-layers"] == []
    assert "pip install -U broken-plugin" in reports["broken-plugin"][0]
    assert "not_there_either" in reports["half-broken"][0]
    assert "expected Layer (got <class 'no_layers.scale.Scale'>). Update it:" in reports["no-layers"][0]
    assert reports["no-layers"][0].endswith(" python -m pip install -U no-layers")
    assert "Did you mean 'layer'? Update it" in reports["odd-kind"][0]
    assert main(["plugins", "doctor"]) == 3
    assert "not_there_either" in capsys.readouterr().out


def test_the_doctor_finds_no_fault_in_the_installed_plugins(fresh_catalogue, capsys):
    assert main(["plugins", "doctor"]) == 0, capsys.readouterr().out
    assert "note:" not in capsys.readouterr().out


def diagnosed(capsys, name):
    """Return the exit code of the doctor, and the problems and notes of one plugin."""
    code = main(["plugins", "doctor", "--json"])
    [report] = [one for one in json.loads(capsys.readouterr().out)["plugins"] if one["name"] == name]
    return code, report["problems"], report["notes"]


def test_the_doctor_names_requirements_that_are_not_met(distribution, capsys):
    needs = ["numpy >=1", "not-there >=2", "pluggy >=99", "other-thing; extra == 'more'", "dos; sys_platform == 'dos'"]
    distribution("acme-layers", SCALE, scale=LAYER_FILE, requires=needs)
    code, problems, _ = diagnosed(capsys, "acme-layers")
    assert code == 3
    assert problems == [
        "acme-layers: requires not-there, which is not installed. python -m pip install 'not-there>=2'",
        f"acme-layers: requires pluggy >=99; {metadata.version('pluggy')} is installed. "
        "python -m pip install 'pluggy>=99'",
    ]


def test_the_doctor_names_the_missing_requirement_of_a_broken_plugin(distribution, capsys):
    distribution("acme-layers", text="import not_there", requires=["not-there"])
    _, problems, _ = diagnosed(capsys, "acme-layers")
    assert "ModuleNotFoundError" in problems[0]
    assert problems[1].startswith("acme-layers: requires not-there, which is not installed.")


def test_the_doctor_notes_imports_that_are_not_required(distribution, capsys):
    source = dedent(LAYER_FILE) + "import json\nimport numpy.linalg\nfrom pluggy import PluginManager\n"
    distribution("acme-layers", SCALE, scale=source, requires=["sigma-kernel", "Pluggy; extra == 'fast'"])
    code, problems, notes = diagnosed(capsys, "acme-layers")
    assert (code, problems) == (0, [])
    text = "acme-layers: imports {0} without requiring {0}. Add it to the dependencies, and install the plugin again."
    assert {text.format("numpy"), text.format("pluggy")} <= {*notes}  # pluggy by an extra only
    assert not any("json" in note for note in notes)


def test_what_an_extra_requires_may_be_imported_in_functions(distribution, capsys):
    source = dedent(LAYER_FILE) + "def late():\n    import numpy\n    import pluggy\n"
    distribution("acme-layers", SCALE, scale=source, requires=["sigma-kernel", "attrs", "Pluggy; extra == 'fast'"])
    _, _, notes = diagnosed(capsys, "acme-layers")
    assert notes == [
        "acme-layers: imports numpy without requiring numpy. Add it to the dependencies, or those of an extra, and"
        " install the plugin again."
    ]


def test_what_an_extra_requires_may_be_imported_by_modules_without_components(distribution, capsys):
    needs = ["sigma-kernel", "attrs", "Pluggy; extra == 'fast'"]
    distribution("acme-layers", SCALE, scale=LAYER_FILE, peer="import numpy\nimport pluggy\n", requires=needs)
    _, _, notes = diagnosed(capsys, "acme-layers")
    assert notes == [
        "acme-layers: imports numpy without requiring numpy. Add it to the dependencies, or those of an extra, and"
        " install the plugin again."
    ]


def test_the_doctor_finds_abstract_components(distribution, capsys):
    source = "from sigma_kernel.contracts import Layer\nclass Scale(Layer): ..."
    distribution("acme-layers", SCALE, scale=source, requires=["sigma-kernel"])
    code, [problem], _ = diagnosed(capsys, "acme-layers")
    assert code == 3
    assert problem.startswith("layer 'acme-layers:scale_x': acme_layers.scale:Scale is abstract: it lacks forward.")


def test_a_plugin_for_a_newer_major_version_has_one_remedy(distribution, capsys):
    distribution("acme-layers", text=NEWER.replace("SCALE", SCALE).replace("1.7", "2.0"), scale=LAYER_FILE)
    _, [problem], _ = diagnosed(capsys, "acme-layers")
    assert "Update sigma-kernel. python -m pip install -U " in problem
    assert "uninstall" not in problem


def test_the_doctor_notes_a_file_that_is_not_python(distribution, capsys):
    distribution("acme-layers", SCALE, scale=LAYER_FILE, unused="1 +")
    code, problems, notes = diagnosed(capsys, "acme-layers")
    assert (code, problems) == (0, [])
    assert notes[0].startswith("acme-layers: ")
    assert notes[0].endswith("unused.py, line 1: invalid syntax. Update it.")


def test_the_doctor_notes_names_that_another_plugin_offers_and_a_newer_api(distribution, capsys):
    distribution("acme-layers", SCALE, scale=LAYER_FILE, requires=["sigma-kernel", "attrs"])
    newer = NEWER.replace("SCALE", SCALE.replace("acme", "rival"))
    distribution("rival-layers", text=newer, scale=LAYER_FILE, requires=["sigma-kernel", "attrs"])
    code, problems, notes = diagnosed(capsys, "rival-layers")
    assert (code, problems) == (0, [])
    assert notes == [
        "rival-layers: It was written for API 1.7, this kernel has 1.0. Update sigma-kernel.",
        "layer 'scale_x': acme-layers offers it, too. Write 'rival-layers:scale_x' in a file.",
    ]
    assert main(["plugins", "doctor"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "'acme-layers:scale_x'" in line]
    assert line == "    note: layer 'scale_x': rival-layers offers it, too. Write 'acme-layers:scale_x' in a file."


NEWER = """
from sigma_kernel import Component, hookimpl

SIGMA_API = "1.7"

@hookimpl
def sigma_components():
    return [Component(SCALE)]
"""
OP = """
from sigma_kernel.graph import dtypes, op, shapes

def rule(g, z, x):
    return g

made = op({name!r}, shapes.same, dtypes.floating, rule)
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme-ops:bare", "op 'acme-ops:bare': it has no expansion, meaning or lowering. Give it one of them."),
        ("bare", "op 'acme-ops:bare': acme_ops.bare:made defines no op of this name. Pass 'acme-ops:bare' to op()."),
    ],
)
def test_the_doctor_finds_ops_that_no_backend_can_compute(distribution, capsys, name, message):
    distribution("acme-ops", '"op", "bare", "acme_ops.bare:made", "Do nothing."', bare=OP.format(name=name))
    try:
        code, problems, _ = diagnosed(capsys, "acme-ops")
    finally:
        OPS.pop(name, None)
        MEANINGS.pop(name, None)  # that of the standard function of this name
    assert (code, problems) == (3, [message])


def test_no_plugin_disables_a_plugin_for_one_command_only(distribution, capsys):
    distribution("acme-layers", SCALE)
    assert main(["--no-plugin", "acme-layers", "components"]) == 0
    assert "scale_x" not in capsys.readouterr().out
    assert main(["components"]) == 0
    assert "scale_x" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["--no-plugin acme-layers plugins list", "plugins --no-plugin acme-layers list",
             "plugins list --no-plugin acme-layers"],
)  # fmt: skip
def test_no_plugin_may_be_anywhere_on_the_command_line(distribution, capsys, line):
    distribution("acme-layers", SCALE)
    assert main(line.split()) == 0
    [row] = [row for row in capsys.readouterr().out.splitlines() if row.startswith("acme-layers")]
    assert row.split()[2] == "disabled"


@pytest.mark.parametrize(
    "line",
    ["--no-plugin acme-layers plugins list", "--no-plugin=acme-layers components", "greet --no-plugin acme-layers"],
)
def test_no_plugin_does_not_import_the_plugin(distribution, tmp_path, monkeypatch, fresh_catalogue, line):
    """One that hangs, or ends the process, when it is imported can be left out."""
    distribution("acme-layers", '"layer", "scale_x", "acme_layers.scale:Scale", "Multiply by one number."')
    trace = tmp_path / "imported"
    (tmp_path / "acme-layers" / "acme_layers" / "plugin.py").write_text(f"open({str(trace)!r}, 'w').close()")
    for name in ("acme_layers.plugin", "acme_layers"):
        monkeypatch.delitem(sys.modules, name)
    lookup._catalogue.cache_clear()
    main(line.split())
    assert not trace.exists()


def test_no_plugin_reports_names_that_are_not_installed(fresh_catalogue, capsys):
    assert main(["--no-plugin", "no-such-room", "components"]) == 3
    assert "plugin 'no-such-room': not installed." in capsys.readouterr().err


def test_a_warning_is_one_line_for_people(distribution, capsys):
    distribution("acme-tools", GREET, greet=GREET_FILE + "\n    import warnings\n    warnings.warn('it is old')\n")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["greet"]) == 0
    assert capsys.readouterr() == ("hello\n", "warning: it is old\n")


def test_colours_are_omitted_without_a_terminal_or_if_disabled(failing, capsys, monkeypatch):
    failing(SigmaDataError("wrong"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(["recipes"])
    assert capsys.readouterr().err == "wrong\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    main(["recipes"])
    assert capsys.readouterr().err == "\x1b[31mwrong\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    main(["recipes"])
    assert capsys.readouterr().err == "wrong\n"


@pytest.mark.parametrize("arguments", [["--help"], ["components"], ["plugins"], ["recipes"], ["components", "--json"]])
def test_light_commands_import_neither_numpy_nor_a_plugins_libraries(arguments):
    heavy = "numpy", "attrs", "tomlkit", "safetensors", "rich", "pooch", "numba", "sigma_kernel.contracts.model"
    code = f"""if True:
        import sys
        from sigma_run.__main__ import main
        code = main({arguments})
        print(*[name for name in {heavy} if name in sys.modules], file=sys.stderr)
        sys.exit(code)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_the_module_can_be_run_as_the_command():
    done = subprocess.run([sys.executable, "-m", "sigma_run", "--version"], capture_output=True, text=True)
    assert done.stdout == f"sigma, version {sigma_kernel.__version__}\n"


# -- standard output ---------------------------------------------------------------------------------------------------
def launched(arguments, stdout):
    command = [sys.executable, "-m", "sigma_run", *arguments]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["plugins", "list", "--json"], ["recipes", "--json"], ["--help"]])
def test_a_full_standard_output_is_reported_in_a_sentence(arguments):
    with open("/dev/full", "w") as full:
        ended = launched(arguments, full)
    assert ended.stderr == "standard output: cannot be written: No space left on device. Redirect it elsewhere.\n"
    assert ended.returncode == 1


def test_a_closed_pipe_ends_the_command_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    ended = launched(["--help"], writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.rooms
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_write_errors_at_the_end_are_reported():
    code = "import sys; from sigma_run.launcher import main; print('left'); sys.exit(main(['check', 'xor']))"
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )  # fmt: skip
    assert ended.stderr == "ok\nstandard output: cannot be written: No space left on device. Redirect it elsewhere.\n"
    assert ended.returncode == 1


def in_a_shell(script, **variables):
    """Run a shell script in which ``$SIGMA`` is the command, and return its exit code and output."""
    environment = {**os.environ, "SIGMA": f"{sys.executable} -m sigma_run", **variables}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, check=False)
    said = done.stderr.decode(errors="replace")
    assert "Traceback" not in said
    assert "bug in Sigma" not in said
    assert "Exception ignored" not in said
    return done.returncode, done.stdout.decode(errors="replace"), said


CLOSED = "standard output: cannot be written: Bad file descriptor. Redirect it elsewhere.\n"
posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")


@posix
@pytest.mark.rooms
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("$SIGMA --help >&-", 1, CLOSED),
        ("$SIGMA recipes --json >&-", 1, CLOSED),
        ("$SIGMA explain xor --json >&-", 1, CLOSED),
        ("$SIGMA run xor --json --quiet --set run.folder=runs >&-", 1, CLOSED),
        ("$SIGMA run xor --quiet --set run.folder=runs >&-", 0, ""),
        ("$SIGMA check xor >&- 2>&- <&-", 0, ""),
        ("$SIGMA run xor --set run.folder=runs 2>/dev/full", 0, ""),
        ("$SIGMA check nofile.toml 2>/dev/full", 2, ""),
        ("$SIGMA check nofile.toml 2>&-", 2, ""),
        ("$SIGMA nonsense 2>/dev/full >&-", 2, ""),
        ("set -o pipefail; $SIGMA run xor --set run.folder=runs 2>&1 >&- | head -1 >/dev/null", 0, ""),
        ("set -o pipefail; $SIGMA recipes --json 2>&1 | true", 1, ""),
    ],
)
def test_closed_or_full_streams_end_in_a_sentence_or_quietly(script, code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = in_a_shell(script)
    assert (ended[0], ended[2]) == (code, said)


@posix
@pytest.mark.rooms
def test_files_of_a_run_do_not_reuse_descriptors_of_closed_streams(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = in_a_shell("$SIGMA run xor --json <&- 2>&-")
    assert code == 0
    assert json.loads(out)["status"] == "finished"


SPELT = {"LC_ALL": "C", "PYTHONUTF8": "0"}  # a locale with ASCII letters only


@pytest.mark.long
@posix
@pytest.mark.rooms
def test_characters_that_the_locale_lacks_are_reported_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "größe").mkdir()
    monkeypatch.chdir(tmp_path / "größe")
    (tmp_path / "größe" / "käse.toml").write_text(
        "# größe\n" + catalogue().load("recipe", "xor").text, encoding="utf-8"
    )
    assert in_a_shell("$SIGMA check käse.toml", **SPELT)[0] == 0
    code, out, _ = in_a_shell("$SIGMA explain käse.toml --json", **SPELT)
    assert code == 0
    assert json.loads(out)
    code, _, said = in_a_shell("$SIGMA run käse.toml --quiet --set run.folder=../läufe", **SPELT)  # not in the project
    assert code == 1
    assert "would hold a path that the locale cannot encode. Set PYTHONUTF8=1." in said
    assert not list((tmp_path / "läufe").iterdir())
    assert in_a_shell("$SIGMA run käse.toml --quiet --set run.folder=runs", **{**SPELT, "PYTHONUTF8": "1"})[0] == 0
    assert in_a_shell("$SIGMA init xor --output 'ö.toml'", **SPELT)[0] == 0
    assert in_a_shell("$SIGMA check nöfile", **SPELT)[0] == 2


def test_text_that_the_locale_cannot_encode_is_reported_in_a_sentence(failing, capsys):
    failing(UnicodeEncodeError("ascii", "käse", 1, 2, "ordinal not in range(128)"))
    assert main(["recipes"]) == 1
    assert capsys.readouterr().err == "'k\\xe4se': cannot be encoded in this locale (ascii). Set PYTHONUTF8=1.\n"


def test_signals_missing_on_the_system_are_skipped():
    code = """if True:
        import signal
        del signal.SIGHUP, signal.SIGUSR1
        from sigma_kernel import signals
        from sigma_run import __main__
        assert signals.ENDING == (signal.SIGINT, signal.SIGTERM) and signals.SAVING == ()
        """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
