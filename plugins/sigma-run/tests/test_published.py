"""Plugins that people publish: the index, how one is installed, what its import does, and stdout for documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.rooms import offers
from sigma_run.launcher import indexed, main
from sigma_run.published.index import IndexedPlugin, check_api, find_row, read_index, search_index, update_index
from sigma_run.published.watching import watch_import

GATE = '"layer", "gate", "acme_gate.layers:Gate", "Multiply by a gate."'
ROW = {
    "name": "gate", "distribution": "acme-gate", "version": "0.3.1", "api": "1.0", "summary": "Gates of Acme",
    "kinds": {"layer": "gate leaky_gate", "hook": "diary"},
}  # fmt: skip
Run = Callable[..., tuple[int, str, str]]


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"format": 1, "plugins": rows}))
    return path


# -- the index ---------------------------------------------------------------------------------------------------------
def test_the_index_has_every_room_with_its_components() -> None:
    rows = {row.distribution: row for row in read_index()}
    assert {name: dict(row.kinds) for name, row in rows.items() if name in offers()} == offers()


def test_a_search_finds_names_kinds_components_and_summaries_in_any_case(tmp_path: Path) -> None:
    rows = read_index(write_rows(tmp_path / "index.json", ROW, {**ROW, "distribution": "other-hook", "kinds": {}}))
    for words, expected in {
        ("Leaky",): ["acme-gate"],
        ("layer", "DIARY"): ["acme-gate"],
        ("acme",): ["acme-gate", "other-hook"],
        (): ["acme-gate", "other-hook"],
        ("rare",): [],
    }.items():
        assert [row.distribution for row in search_index(rows, words)] == expected


def test_rows_of_others_stay_when_those_of_the_rooms_are_written(tmp_path: Path) -> None:
    room = tmp_path / "sigma-room"
    room.mkdir()
    (room / "pyproject.toml").write_text('[project]\nversion = "0.9.0"\ndescription = "A room"\n')
    text = update_index(tmp_path, {"sigma-room": {"layer": "wall"}}, write_rows(tmp_path / "index.json", ROW))
    (tmp_path / "index.json").write_text(text)
    assert [row.release for row in read_index(tmp_path / "index.json")] == ["acme-gate==0.3.1", "sigma-room==0.9.0"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "is not an index of plugins"),
        ("{}", "is not an index of plugins"),
        ('{"format": 2, "plugins": []}', "is an index of another format than 1. Update sigma-run."),
        (json.dumps({"format": 1, "plugins": [{}]}), "plugins[0]: must have name, distribution"),
        (
            json.dumps({"format": 1, "plugins": [ROW, {**ROW, "version": "--pre"}]}),
            "plugins[1].version: '--pre' is not",
        ),
        (json.dumps({"format": 1, "plugins": [{**ROW, "distribution": "-r x"}]}), "plugins[0].distribution: '-r x' is"),
        (json.dumps({"format": 1, "plugins": [{**ROW, "kinds": ["layer"]}]}), "plugins[0].kinds: must have the names"),
        (
            json.dumps({"format": 1, "plugins": [{**ROW, "summary": "Gates\r\x1b[2K"}]}),
            "plugins[0].summary: 'Gates\\r\\x1b[2K' is not printable text. Correct it.",
        ),
    ],
)
def test_a_file_that_is_no_index_is_refused_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(SigmaConfigError) as caught:
        read_index(tmp_path / "index.json")
    assert problem in str(caught.value)


def test_a_row_is_found_by_its_name_and_its_distribution_and_an_unknown_one_is_suggested() -> None:
    row = IndexedPlugin(**ROW)
    assert find_row([row], "gate") is find_row([row], "Acme_Gate") is row
    with pytest.raises(SigmaConfigError, match=r"the index has none of this name\. Did you mean 'acme-gate'\?"):
        find_row([row], "acme-gates")


def test_a_distribution_goes_before_a_name_and_a_name_of_several_is_refused() -> None:
    first, second = (IndexedPlugin(**{**ROW, "distribution": name}) for name in ("evil-gate", "acme-gate"))
    other = IndexedPlugin(**{**ROW, "name": "acme-gate", "distribution": "evil-other"})
    assert find_row([other, first, second], "acme-gate") is second
    with pytest.raises(SigmaConfigError, match="plugin 'gate': acme-gate and evil-gate have this name. Write the one"):
        find_row([first, second], "gate")


def test_the_search_prints_rows_and_whether_they_are_installed(sigma: Run, tmp_path: Path, distribution: Any) -> None:
    distribution("acme-gate", GATE)
    index = write_rows(tmp_path / "index.json", ROW)
    code, out, _ = sigma("plugins", "search", "gate", "--index", index)
    assert (code, out.split()) == (0, ["acme-gate", "0.3.1", "installed", "layer,", "hook", "Gates", "of", "Acme"])
    [found] = json.loads(sigma("plugins", "search", "leaky", "--index", index, "--json")[1])["plugins"]
    assert (found["installed"], found["kinds"]["layer"]) == (True, ["gate", "leaky_gate"])
    code, out, said = sigma("plugins", "search", "rare", "--index", index)
    assert (code, out) == (0, "")
    assert said.startswith("No plugin of the index has rare.")


# -- installing --------------------------------------------------------------------------------------------------------
@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that are run from here on: none really is."""
    called: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        called.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(indexed.subprocess, "run", run)
    return called


def test_a_plugin_is_installed_at_the_version_of_the_index_beside_this_python(
    sigma: Run, tmp_path: Path, commands: list[list[str]]
) -> None:
    index = write_rows(tmp_path / "index.json", ROW)
    code, _, _ = sigma("plugins", "install", "gate", "--index", index, "--yes")
    assert code == 0
    first, second = commands
    assert first == [*indexed.choose_installer(), "acme-gate==0.3.1"]
    assert sys.executable in first
    assert (second[:2], second[-1]) == ([sys.executable, "-P"], "acme-gate")


def test_nothing_is_installed_unasked(sigma: Run, tmp_path: Path, commands: list[list[str]]) -> None:
    code, _, said = sigma("plugins", "install", "gate", "--index", write_rows(tmp_path / "index.json", ROW))
    assert code == 2
    assert "nobody can be asked here. Pass --yes to run: " in said
    assert commands == []


def test_a_plugin_for_another_api_is_not_installed(sigma: Run, tmp_path: Path, commands: list[list[str]]) -> None:
    index = write_rows(tmp_path / "index.json", {**ROW, "api": "2.0"})
    code, _, said = sigma("plugins", "install", "gate", "--index", index, "--yes")
    assert code == 2
    assert "acme-gate 0.3.1: is for API 2.0, this kernel has 1.0." in said
    assert commands == []
    check_api(IndexedPlugin(**{**ROW, "api": "1.9"}))  # a newer minor version is a warning when it is used


def test_an_installed_plugin_is_not_installed_again(
    sigma: Run, tmp_path: Path, commands: list[list[str]], distribution: Any
) -> None:
    distribution("acme-gate", GATE)
    code, _, said = sigma("plugins", "install", "gate", "--index", write_rows(tmp_path / "index.json", ROW))
    assert (code, commands) == (0, [])
    assert said.startswith("acme-gate is installed;")


def test_an_environment_without_installers_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "find_spec", lambda name: None)
    monkeypatch.setattr(indexed, "which", lambda name: "/bin/uv")
    assert indexed.choose_installer()[:3] == ["/bin/uv", "pip", "install"]
    monkeypatch.setattr(indexed, "which", lambda name: None)
    with pytest.raises(SigmaPluginError, match="has no pip, and there is no uv. Run .* -m ensurepip"):
        indexed.choose_installer()


# -- plugins that a run has used, and that are gone --------------------------------------------------------------------
def test_an_error_names_the_version_of_a_plugin_that_the_run_has_used() -> None:
    recalled = Catalogue(()).recalling({"acme-zoo": "0.1.0", "sigma-kernel": "0.1.0"})
    with pytest.raises(SigmaPluginError) as caught:
        recalled.resolve("layer", "acme-zoo:gate")
    assert str(caught.value) == (
        "layer 'gate': no installed plugin is called 'acme-zoo'. The run used it. If you trust it: "
        "python -m pip install acme-zoo==0.1.0"
    )
    with pytest.raises(SigmaConfigError, match=r"no plugin is called 'acme-zoo'\. .*install acme-zoo==0\.1\.0"):
        recalled.trusting("own").preferring(["acme-zoo"])


@pytest.mark.parametrize("versions", [{"acme-zoo": "1.0; rm -rf x"}, {"acme-zoo --pre": "1.0"}, {"acme-zoo": ""}])
def test_what_is_no_version_in_a_run_folder_is_not_recommended(versions: dict[str, str]) -> None:
    with pytest.raises(SigmaPluginError) as caught:
        Catalogue(()).recalling(versions).resolve("layer", f"{next(iter(versions))}:gate")
    assert "pip" not in str(caught.value)


# -- imports -----------------------------------------------------------------------------------------------------------
IMPL = "\nfrom sigma_kernel import hookimpl\nSIGMA_API = '1.0'\n@hookimpl\ndef sigma_components(): return []\n"
CHANGES = {
    "a signal": ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)", "the handler of SIGTERM"),
    "random numbers": ("import random\nrandom.seed(0)", "Python's random numbers"),
    "logging": ("import logging\nlogging.basicConfig(level=10)", "the logging of all libraries"),
    "warnings": ("import warnings\nwarnings.simplefilter('ignore')", "the filters of warnings"),
    "the directory": ("import os\nos.chdir('/')", "the working directory"),
    "the environment": ("import os\nos.environ['ACME'] = '1'", "the environment variables"),
    "stdout": ("import sys\nsys.stdout.reconfigure(encoding='ascii')", "the encoding of stdout"),
    "numpy": ("import numpy as np\nnp.random.seed(0)", "NumPy's random numbers"),
    "numpy's errors": ("import numpy as np\nnp.seterr(all='raise')", "np.seterr"),
    "a thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=[5], daemon=True).start()",
        "the number of threads",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_an_import_changes_is_a_fault(distribution: Any, name: str) -> None:
    code, what = CHANGES[name]
    add_unimported(distribution, "acme-odd", code + IMPL)
    report = watch_import("acme-odd")
    assert report.faults == [f"acme-odd: its import changes {what}. Leave that to the user."]


def add_unimported(distribution: Any, name: str, text: str) -> None:
    """Install a distribution whose plugin this process does not import."""
    distribution(name, text=IMPL)
    package = name.replace("-", "_")
    Path(sys.path[0], package, "plugin.py").write_text(text)


def test_an_import_is_noted_for_what_it_prints_brings_and_takes(distribution: Any) -> None:
    add_unimported(distribution, "acme-loud", "import os, time, numpy\nos.write(1, b'hi\\n')\ntime.sleep(0.6)" + IMPL)
    printed, brought, slow = watch_import("acme-loud").notes
    assert printed == "acme-loud: its import prints 'hi'. Leave that out."
    assert brought.startswith("acme-loud: its import brings numpy with it.")
    assert slow.startswith("acme-loud: its import takes ")


def test_an_ordinary_plugin_has_no_report(distribution: Any) -> None:
    add_unimported(distribution, "acme-plain", IMPL)
    report = watch_import("acme-plain")
    assert (report.faults, report.notes, report.ends) == ([], [], False)


@pytest.mark.long
def test_an_import_that_ends_or_stops_the_process_is_named(distribution: Any, sigma: Run) -> None:
    add_unimported(distribution, "acme-end", "import os\nos._exit(7)")
    [fault] = watch_import("acme-end").faults
    assert fault.startswith("acme-end: its import ended the process with exit code 7.")
    code, out, _ = sigma("plugins", "doctor", "--json")  # which lives on
    [row] = [row for row in json.loads(out)["plugins"] if row["name"] == "acme-end"]
    assert (code, row["problems"]) == (3, [fault])


def test_what_an_import_writes_need_not_be_text(distribution: Any) -> None:
    code = "import atexit, os\natexit.register(os.write, 2, b'\\xff')\natexit.register(os.write, 1, b'\\xff')"
    add_unimported(distribution, "acme-bytes", code + IMPL)
    report = watch_import("acme-bytes")
    assert (report.faults, report.ends) == ([], False)


def test_files_in_the_working_directory_are_no_modules_of_processes(
    distribution: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_unimported(distribution, "acme-plain", IMPL)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "pluggy.py").write_text("import os\nos._exit(9)")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    assert watch_import("acme-plain").faults == []
    installer = indexed.choose_installer()
    assert installer[1] == "-P" or Path(installer[0]).name == "uv"


def test_an_import_that_does_not_end_is_ended(distribution: Any) -> None:
    add_unimported(distribution, "acme-wait", "import time\ntime.sleep(100)")
    [fault] = watch_import("acme-wait", seconds=2).faults
    assert fault == "acme-wait: its import has not ended after 2 seconds. Move what waits out of its module."


@pytest.mark.long
def test_the_doctor_names_commands_that_cannot_be_reached(distribution: Any, sigma: Run) -> None:
    distribution(
        "acme-verbs",
        '"verb", "run", "acme_verbs.verbs:run", "Run."',
        '"command", "plugins", "acme_verbs.verbs:Plugins", "Plug."',
        commands={"hail": "acme_verbs.verbs:hail"},
        verbs="import click\n@click.command()\ndef run(): ...\nclass Plugins: ...",
    )
    code, out, _ = sigma("plugins", "doctor", "--json")
    [row] = [row for row in json.loads(out)["plugins"] if row["name"] == "acme-verbs"]
    text = "\n".join(row["problems"])
    assert code == 3
    assert (
        "verb 'acme-verbs:run': `sigma run` is a command of Sigma's own, and this one is `sigma acme-verbs:run`" in text
    )
    assert "command 'acme-verbs:plugins': `sigma plugins` is a command of Sigma's own" in text
    assert "its metadata declare the command 'hail', but no record of the kind verb has this name" in text


# -- stdout is for the document ----------------------------------------------------------------------------------------
LOUD = """\
import atexit, os, subprocess, sys
print("printed")
sys.__stdout__.write("written\\n")
os.write(1, b"low level\\n")
subprocess.run([sys.executable, "-c", "print('child')"])
atexit.register(print, "at exit")
"""


GATES = "from sigma_kernel import Layer\nclass Gate(Layer):\n    def forward(self, context, x): return x\n"


def call_sigma(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "sigma_run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def install_loud_gate(distribution: Any) -> None:
    text = LOUD + IMPL.replace("return []", f"return [Component({GATE})]").replace("import ", "import Component, ", 1)
    distribution("acme-gate", GATE, layers=LOUD + GATES)
    Path(sys.path[0], "acme_gate", "plugin.py").write_text(text)


@pytest.mark.long_cases("arguments1")
@pytest.mark.parametrize("arguments", [["plugins"], ["components", "layer", "gate"]])
def test_a_plugin_that_prints_cannot_spoil_a_document(distribution: Any, arguments: list[str]) -> None:
    install_loud_gate(distribution)
    done = call_sigma(*arguments, "--json")
    assert json.loads(done.stdout), done.stderr
    for word in ("printed", "written", "low level", "child", "at exit"):
        assert word in done.stderr


@pytest.mark.long
def test_the_doctor_notes_what_a_plugin_prints_also_at_the_end_of_the_process(distribution: Any) -> None:
    install_loud_gate(distribution)
    done = call_sigma("plugins", "doctor", "--json")
    [row] = [row for row in json.loads(done.stdout)["plugins"] if row["name"] == "acme-gate"]
    assert row["problems"] == []
    assert any(note.startswith("acme-gate: its import prints ") for note in row["notes"])


def test_a_command_with_an_option_json_of_its_own_prints_as_it_likes(distribution: Any) -> None:
    distribution(
        "acme-say",
        '"verb", "say", "acme_say.verbs:say", "Say."',
        commands={"say": "acme_say.verbs:say"},
        verbs="import click\n@click.command()\n@click.option('--json', is_flag=True)\ndef say(json): click.echo('[1]')",
    )
    assert call_sigma("say", "--json").stdout == "[1]\n"


def test_a_document_in_this_process_goes_where_stdout_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plugins"]
