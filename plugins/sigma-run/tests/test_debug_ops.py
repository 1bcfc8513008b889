"""``sigma run --debug-ops`` names the layer and the op from which NaN or infinity comes."""

from __future__ import annotations

import json
import re

from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, gradient, originating, rewrite, symbol
from sigma_run.launcher.group import main

BAD = """
format = 1

[run]
name = "bad"

[data]
dataset = "xor"
batch_size = 4

[network]
architecture = 'input(2) + dense(8) + dense(8) + output(2) + softmax_cross_entropy()'

[trainer]
optimiser = { type = "gradient_descent", learning_rate = 1e30 }

[hooks.finish]
type = "stop"
when = "epoch reaches 5"
"""


def test_nodes_know_the_layer_that_made_them_through_gradients_and_rewriting():
    x = symbol((3,))
    with originating("1-first"):
        y = f.tanh(x) * (2.0 + 3.0)
    with originating("2-second"):
        loss = f.sum(f.softplus(y))
    (slope,) = gradient(loss, [x])
    graph = rewrite(Graph((x,), (loss, slope)))
    origins = {node.op: node.origin for node in graph if node.op in ("tanh", "log1p", "exp")}
    assert origins == {"tanh": "1-first", "log1p": "2-second", "exp": "2-second"}
    assert {node.origin for node in graph} <= {
        "", "1-first", "2-second", "gradient of 1-first", "gradient of 2-second"}  # fmt: skip
    assert "gradient of 1-first" in {node.origin for node in graph}
    with originating("elsewhere"):
        assert Graph((x,), (f.tanh(x),)) == Graph((x,), (f.tanh(x),))
    assert symbol((3,)).origin == ""


def test_a_run_that_diverges_fails_with_the_layer_and_the_op(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text(BAD)
    assert main(["run", "bad.toml", "--debug-ops", "--quiet"]) == 1
    error = capsys.readouterr().err
    assert "iteration 2: 1-dense: " in error or "iteration 2: 2-dense: " in error, error
    assert main(["run", "bad.toml", "--quiet"]) == 1
    assert "The backend 'debug' (sigma run --debug-ops) names the op" in capsys.readouterr().err


def test_a_layer_that_another_owns_is_named_by_its_address(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text(BAD.replace("dense(8) + dense(8)", 'residual(dense(2) + dense(2), name="a")'))
    assert main(["run", "bad.toml", "--debug-ops", "--quiet"]) == 1
    assert re.search(r"iteration 2: a\.body\.[01]-dense: ", error := capsys.readouterr().err), error


def test_a_run_that_is_right_has_the_bits_of_the_reference(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sums = []
    for option in (["--debug-ops"], ["--backend", "numpy"]):
        assert main(["run", "xor", "--epochs", "3", "--json", *option]) == 0
        sums.append(json.loads(capsys.readouterr().out))
    assert sums[0]["parameters_sha256"] == sums[1]["parameters_sha256"]
    assert [one["backend"] for one in sums] == ["debug", "numpy"]
    assert main(["resume", sums[1]["folder"], "--epochs", "4", "--debug-ops", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["backend"] == "debug"
