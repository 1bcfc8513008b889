"""The configuration of the page about several files trains, predicts, and is the same as its Python."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sigma_data import Digits
from sigma_run import load
from sigma_run.launcher.group import main

PAGE = Path(__file__).parents[1] / "docs/how-to/several-files.md"

pytestmark = pytest.mark.rooms


def as_idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def test_the_configuration_of_the_page_trains_and_predicts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    digits = Digits(split={"training": 1.0})["training"].block(0)
    images = np.rint(digits["inputs"].reshape(-1, 8, 8) * 255).astype(np.uint8)
    with zipfile.ZipFile("digits.zip", "w") as archive:
        archive.writestr("images-idx3-ubyte.gz", gzip.compress(as_idx(images)))
        archive.writestr("labels-idx1-ubyte.gz", gzip.compress(as_idx(digits["targets"].astype(np.uint8))))
    text = PAGE.read_text().partition("```toml\n")[2].partition("```")[0]
    Path("digits.toml").write_text(text)
    assert main(["run", "digits.toml", "--quiet", "--epochs", "2", "--set", "run.folder=runs"]) == 0
    Path("others-idx3-ubyte.gz").write_bytes(gzip.compress(as_idx(images[:5])))
    capsys.readouterr()
    (run,) = Path("runs").iterdir()
    assert main(["predict", str(run), "others-idx3-ubyte.gz", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["predictions"]
    wanted = load(run).predict(images[:5] / 255)
    assert [row["class"] for row in printed] == wanted.argmax(axis=1).tolist()
    np.testing.assert_allclose([row["probability"] for row in printed], wanted.max(axis=1), rtol=1e-6)
