"""The command: one document on stdout, a table for people on stderr, errors with remedies."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from sigma_bench import command, contestants, entry
from sigma_bench.contest import agree
from sigma_bench.contestants import numpy_loop
from sigma_bench.contestants.sigma import Sigma
from sigma_bench.entry import Entry
from sigma_bench.translation import to_workload
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaTrainingError
from sigma_run.config import load
from sigma_run.launcher import main

KEYS = {"name", "median_s", "spread_s", "samples_per_s", "compile_s", "peak_bytes"}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make rounds short."""
    monkeypatch.setattr(command, "Entry", partial(Entry, least=0.001))


def test_the_printed_document_has_the_documented_keys_and_the_saved_file_has_more(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.json"
    given = ["--backends", "numpy, sigma-backend-numpy:numpy", "--peers", "numpy-loop", "--rounds", "2", "--json"]
    assert main(["bench", str(small), *given, "--save", str(kept)]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert list(found) == ["recipe", "machine", "contestants", "ratios"]
    assert found["recipe"] == str(small)
    names = [one["name"] for one in found["contestants"]]
    assert names == ["numpy", "sigma-backend-numpy:numpy", "numpy-loop"]
    for one in found["contestants"]:
        assert set(one) == KEYS
        assert one["median_s"] > 0
        assert one["samples_per_s"] == pytest.approx(42 / 5 / one["median_s"])
        assert one["peak_bytes"] > 10_000_000
    *ours, peer = (one["median_s"] for one in found["contestants"])
    ratios = {name: {"numpy-loop": pytest.approx(peer / took)} for name, took in zip(names[:2], ours, strict=True)}
    assert found["ratios"] == ratios
    assert "the first 20 losses of numpy-loop are Sigma's, in float64\n" in err
    assert "numpy-loop takes" in err
    written = json.loads(kept.read_text())
    assert (written["format"], written["machine"]) == (1, found["machine"])
    [result] = written["results"]
    for one, told in zip(result["contestants"], found["contestants"], strict=True):
        assert {name: one[name] for name in KEYS} == told
        assert set(one) - KEYS == {"started_s", "unit", "rounds_s"}
        assert len(one["rounds_s"]) == 2


def test_the_benchmark_prints_a_table_on_stderr(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(small), "--backends", "numpy", "--rounds", "1", "--roofline"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    name, head, ours, best = err.splitlines()
    assert name == str(small)
    assert re.split(r"\s\s+", head.strip()) == ["per iteration", "spread", "samples/s", "start-up", "compile", "memory"]
    assert ours.split()[0] == "numpy"
    assert re.fullmatch(r"at best: [\d.]+ GFLOP/s in float32, [\d.]+ GB/s of memory", best)


def test_a_series_of_benchmarks_gives_one_document_and_a_final_table(capsys: pytest.CaptureFixture[str]) -> None:
    smaller = ["--set", "run.backend=numpy", "--set", "data.rows=100", "--set", "data.batch_size=20"]
    assert main(["bench", "--random", "2", "--seed", "3", "--rounds", "1", "--json", *smaller]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert list(found) == ["machine", "results"]
    assert [result["recipe"][:9] for result in found["results"]] == ["random 1:", "random 2:"]
    assert all(result["ratios"] == {"numpy": {}} for result in found["results"])
    assert [line[:9] for line in err.splitlines()[-2:]] == ["random 1:", "random 2:"]


def test_a_broken_peer_is_detected(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_loop.Adaptive, "__call__", lambda update: None)
    with pytest.raises(SigmaTrainingError, match="peer 'numpy-loop': its loss at iteration 2 is "):
        compared(small)


def test_a_peer_with_different_dropout_is_detected(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bits = numpy_loop.Philox.bits
    monkeypatch.setattr(numpy_loop.Philox, "bits", lambda philox, i, size: bits(philox, i + (i == 10), size))
    with pytest.raises(SigmaTrainingError, match="its loss at iteration 11 is "):
        compared(small)


def compared(path: Path) -> None:
    configuration = load(path, ["run.precision=float64"])
    work = to_workload(Sigma(configuration).trainer)
    agree([lambda: Sigma(configuration)], [lambda: numpy_loop.NumpyLoop(work)])


# -- all installed backends --------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("naps")
def test_without_names_all_installed_backends_are_measured_and_one_is_advised(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "installed_backends", lambda tell: ["numpy", "naps"])
    assert main(["bench", str(small), "--rounds", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [one["name"] for one in found["contestants"]] == ["numpy", "naps"]
    assert found["advice"]["take"] == min(found["contestants"], key=lambda one: one["median_s"])["name"]
    assert f"{found['advice']['take']}: " in err
    assert max(map(len, err.splitlines()[1:])) <= 80


def test_a_backend_that_cannot_train_the_network_is_a_line_with_its_reason(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "installed_backends", lambda tell: ["abacus", "numpy"])
    assert main(["bench", str(small), "--rounds", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [one["name"] for one in json.loads(out)["contestants"]] == ["numpy"]
    assert "abacus: left out: " in err
    assert "backend 'abacus': no plugin offers it." in err
    monkeypatch.setattr(command, "installed_backends", lambda tell: ["abacus", "slide-rule"])
    assert main(["bench", str(small), "--rounds", "1"]) == 2
    assert "bench: no installed backend trains this network." in capsys.readouterr().err


@pytest.mark.parametrize("mistake", [
    ("trainer.optimiser.learning_rat=0.1", "has no setting 'learning_rat'. Did you mean 'learning_rate'?"),
    ("network.architecture=input(99) + output(2) + softmax_cross_entropy()", "have shape"),
], ids=lambda one: one[0].partition("=")[0])  # fmt: skip
def test_a_mistake_that_no_backend_causes_is_told_once(
    mistake: tuple[str, str], small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "installed_backends", lambda tell: ["numpy", "numba"])
    assert main(["bench", str(small), "--set", mistake[0], "--rounds", "1"]) == 2
    *_, last = lines = capsys.readouterr().err.splitlines()
    assert mistake[1] in last
    assert not any("left out" in line for line in lines)


def test_data_that_are_not_there_are_told_before_a_process_starts(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIGMA_OFFLINE", "1")
    monkeypatch.setattr(entry, "Remote", None)  # no process is started
    monkeypatch.setattr(command, "installed_backends", lambda tell: ["numpy", "numba"])
    data = f"data={{dataset='mnist', cache='{tmp_path}', batch_size=5}}"
    assert main(["bench", str(small), "--set", data]) == SigmaDataError.exit_code
    told = capsys.readouterr().err
    assert told.count("cannot be fetched") == 1
    assert "left out" not in told


@pytest.mark.parametrize("made", ["bench", "diff"])
@pytest.mark.usefixtures("naps")
def test_a_named_backend_that_cannot_compute_here_is_refused_with_its_reason(
    made: str, small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from acme_naps.naps import Naps  # installed by the fixture

    def absent(self: Naps) -> None:
        raise SigmaConfigError("backend 'naps': there is no bed. Buy one.")

    monkeypatch.setattr(Naps, "__init__", absent)
    monkeypatch.setattr(entry, "Remote", None)
    assert main([made, str(small), "--backends", "numpy,naps"]) == 2
    assert capsys.readouterr().err == "--backends: naps cannot be used here: there is no bed. Buy one.\n"


NET = "--random=1"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["SMALL", "--peers", "numpy-lop"], 2, "peer 'numpy-lop': no such peer. Did you mean 'numpy-loop'?"),
        (["SMALL", "--backends", "nmpy"], 2, "backend 'nmpy': no plugin offers it. Did you mean 'numpy'?"),
        (["SMALL", "--peers=numpy-loop", "--set=trainer.optimiser=adam"], 2, "peer 'numpy-loop': optimiser: it does"),
        (
            ["SMALL", "--peers=numpy-loop", "--set=trainer.optimiser=rmsprop"],
            2,
            "peers: optimiser: they do not",
        ),
        (["SMALL", "--backends=numpy", "--set", "data.rows=-1"], 2, "data.rows"),
        (["SMALL", "--rounds", "0"], 2, "--rounds"),
        ([], 2, "bench: nothing to measure, or too much. Pass a recipe"),
        (["SMALL", NET], 2, "only one of them"),
        (["--grow", "widht"], 2, "--grow widht: there is no such axis. Did you mean 'width'?"),
        ([NET, "--chart", "chart.pdf"], 2, "--chart chart.pdf: is neither .svg nor .png"),
    ],
)
def test_a_mistake_is_reported_in_a_sentence_with_its_exit_code(
    small: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    assert main(["bench", *(str(small) if one == "SMALL" else one for one in arguments)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err


@pytest.mark.parametrize(
    ("given", "library"),
    [
        (["--peers", "torch"], "torch"),
        (["--peers", "jax-scan"], "jax"),
        (["--chart", "chart.svg"], "matplotlib"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    small: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    library: str,
) -> None:
    monkeypatch.setattr(contestants, "find_spec", lambda name: None)
    assert main(["bench", str(small), *given]) == 3
    told = f"{library} is not installed. Run: python -m pip install {library}"
    assert told in capsys.readouterr().err


def test_torch_replaces_torch_compile_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contestants, "require_library", lambda where, library: None)
    monkeypatch.setattr(contestants, "which", lambda name: None)
    told: list[str] = []
    assert list(contestants.select_peers(["torch-compile"], told.append)) == ["torch"]
    assert "there is no C++ compiler; using 'torch'" in told[0]
    monkeypatch.setattr(contestants, "which", lambda name: f"/bin/{name}")
    assert list(contestants.select_peers(["torch-compile"], told.append)) == ["torch-compile"]
    assert len(told) == 1


def test_several_trainers_are_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, data, network, trainer, _ = re.split(r"\n(?=\[)", small.read_text().partition("[run]")[2])
    body = "\n".join((data, network))
    each = [re.sub(r"^\[", f"[trainers.{name}.", body, flags=re.MULTILINE) for name in ("left", "right")]
    heads = [trainer.replace("[trainer]", f"[trainers.{name}]") for name in ("left", "right")]
    small.write_text("\n".join(["format = 1", f"[run]{run}", *heads, *each]))
    assert main(["bench", str(small), "--backends", "numpy"]) == 2
    assert "a single trainer (got left, right). Keep one" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--save", "--chart"])
def test_an_output_file_that_cannot_be_written_is_refused_before_measuring(
    option: str, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "Entry", None)  # the measurement is never reached
    wanted = tmp_path / "nowhere" / "x.svg"
    assert main(["bench", str(small), option, str(wanted)]) == 2
    told = f"{option} {wanted}: there is no directory {wanted.parent}. Create it, or choose another.\n"
    assert capsys.readouterr() == ("", told)
    monkeypatch.setattr(command.os, "access", lambda path, mode: False)
    assert main(["bench", str(small), option, str(tmp_path / "x.svg")]) == 2
    assert "permission denied. Choose a file in another directory." in capsys.readouterr().err


def test_a_late_write_failure_is_reported_in_a_sentence(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert main(["bench", str(small), "--backends", "numpy", "--rounds", "1", "--save", str(tmp_path / "x.json")]) == 1
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .startswith(f"--save {tmp_path / 'x.json'}: cannot be written: No space left on device. ")
    )
