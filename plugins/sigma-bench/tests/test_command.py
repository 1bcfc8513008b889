"""The command: one document on stdout, a table for people on stderr, errors that say what to do."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from sigma_bench import command
from sigma_bench.contest import Terms
from sigma_bench.contestants import numpy_loop
from sigma_kernel.launcher import main


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rounds be short."""
    monkeypatch.setattr(command, "Terms", partial(Terms, least=0.001))


def test_the_document_holds_what_the_design_says(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--backends", "numpy, sigma-backend-numpy:numpy", "--peers", "numpy-loop", "--rounds", "2", "--json"]
    assert main(["bench", str(small), *given]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert set(found) == {"recipe", "machine", "contestants", "ratios"}
    assert found["recipe"] == str(small)
    names = [one["name"] for one in found["contestants"]]
    assert names == ["numpy", "sigma-backend-numpy:numpy", "numpy-loop"]
    for one in found["contestants"]:
        assert set(one) == {"name", "median_s", "spread_s", "samples_per_s", "compile_s", "peak_bytes"}
        assert one["median_s"] > 0
        assert one["samples_per_s"] == pytest.approx(42 / 5 / one["median_s"])
        assert one["peak_bytes"] > 4 * 10 * 9
    *ours, peer = (one["median_s"] for one in found["contestants"])
    ratios = {name: {"numpy-loop": pytest.approx(peer / took)} for name, took in zip(names[:2], ours, strict=True)}
    assert found["ratios"] == ratios
    assert "numpy-loop takes" in err


def test_people_get_a_table_on_stderr(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(small), "--peers", "numpy-loop", "--rounds", "1"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    head, ours, theirs, ratio = err.splitlines()
    assert head.split()[:2] == ["per", "iteration"]
    assert (ours.split()[0], theirs.split()[0]) == ("numpy", "numpy-loop")
    assert ratio.endswith("times as long as numpy")


def test_without_peers_nothing_is_compared(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(small), "--rounds", "1", "--json", "--set", "trainer.optimiser=adam"]) == 0
    assert json.loads(capsys.readouterr().out)["ratios"] == {"numpy": {}}


def test_a_peer_that_is_broken_is_found_out_and_nothing_is_reported(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_loop.Adaptive, "__call__", lambda update: None)
    assert main(["bench", str(small), "--peers", "numpy-loop", "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("peer 'numpy-loop': its loss at iteration 2 is ")


def test_a_peer_that_drops_other_elements_is_found_out(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bits = numpy_loop.Philox.bits
    monkeypatch.setattr(numpy_loop.Philox, "bits", lambda philox, i, size: bits(philox, i + (i == 10), size))
    assert main(["bench", str(small), "--peers", "numpy-loop"]) == 1
    assert "its loss at iteration 11 is " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--peers", "numpy-lop"], 2, "peer 'numpy-lop': there is none. Did you mean 'numpy-loop'?"),
        (["--backends", "nmpy"], 2, "backend 'nmpy': no plugin offers it. Did you mean 'numpy'?"),
        (["--peers", "numpy-loop", "--set", "trainer.optimiser=adam"], 2, "peer 'numpy-loop': optimiser: it does not"),
        (["--set", "data.rows=-1"], 2, "data.rows"),
        (["--rounds", "0"], 2, "--rounds"),
    ],
)
def test_a_mistake_is_a_sentence(
    small: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    assert main(["bench", str(small), *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err


def test_several_trainers_are_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, data, network, trainer, _ = re.split(r"\n(?=\[)", small.read_text().partition("[run]")[2])
    body = "\n".join((data, network))
    each = [re.sub(r"^\[", f"[trainers.{name}.", body, flags=re.MULTILINE) for name in ("left", "right")]
    heads = [trainer.replace("[trainer]", f"[trainers.{name}]") for name in ("left", "right")]
    small.write_text("\n".join(["format = 1", f"[run]{run}", *heads, *each]))
    assert main(["bench", str(small)]) == 2
    assert "here are left, right" in capsys.readouterr().err
