"""Whole runs of recipes, against the reference backend."""

from __future__ import annotations

import json

import pytest

from sigma_kernel.launcher import main

pytestmark = pytest.mark.rooms


@pytest.mark.parametrize("recipe", ["iris", "digits"])
def test_a_run_of_a_recipe_ends_where_the_reference_ends(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    summaries = {}
    for backend in ("numpy", "numba"):
        changes = [f"run.backend={backend}", "hooks.finish.when=epoch reaches 3"]
        options = [part for change in changes for part in ("--set", change)]
        assert main(["run", recipe, "--json", "--quiet", *options]) == 0
        summaries[backend] = json.loads(capsys.readouterr().out)
    assert summaries["numba"]["backend"] == "numba"
    assert summaries["numba"]["iterations"] == summaries["numpy"]["iterations"]
    assert summaries["numba"]["metrics"] == pytest.approx(summaries["numpy"]["metrics"], rel=1e-3)
