"""Run the recipes for the gallery, and the first page's example; keep their curves and results beside this file.

``python -m figures.gallery [NAME...]`` in the folder ``docs``, on a quiet machine (``tox -e gallery``).  MNIST is
downloaded, unless ``--mnist FOLDER`` has its IDX files.  The table of the recipe parkinsons is made up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import FOLDER, files
from sigma_bench.report import machine
from sigma_kernel import catalogue
from sigma_plot.charts import panels, svg
from sigma_run.config import open_run

RESULTS = FOLDER / "gallery.json"
KEPT = ("status", "backend", "seed", "epochs", "iterations", "seconds", "metrics")


def names() -> list[str]:
    """Return the recipes, those for benchmarks last."""
    return sorted((one.name for one in catalogue().components("recipe")), key=lambda name: ("bench" in name, name))


def run(name: str, *settings: str) -> dict[str, Any]:
    """Run a recipe in a process of its own, draw its curves, and return what it came to."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        command = [sys.executable, "-m", "sigma_run", "run", name, "--quiet", "--json", *settings]
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - started
        summary = json.loads(made.stdout)
        curves = open_run(Path(summary["folder"]), print).curves(print)["trainer"].curves()
    drawn = svg(f"sigma run {name}", panels({"": curves}, "epoch"), "epoch")
    (FOLDER / "gallery" / f"{name}.svg").write_text(drawn, encoding="utf-8")
    ends = {name: float(curve.values[-1]) for name, curve in curves.items()}
    kept = {key: summary[key] for key in KEPT}
    return {"command": f"sigma run {name}", **kept, "process_seconds": round(seconds, 2), "curves": ends}


def main() -> None:
    """Run the recipes that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=names())
    parser.add_argument("--mnist", help="the folder of MNIST's four IDX files, or of a part of them")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"recipes": {}}
    results["machine"] = machine() | {"load": round(os.getloadavg()[0], 1)}
    for name in given.names:
        part = [word for setting in files.settings(name, given.mnist) for word in ("--set", setting)]
        run(name, *part)  # fills the cache of compiled programs
        results["recipes"][name] = run(name, *part)
        if part:
            setting = part[1].partition("=")[0]
            results["recipes"][name]["command"] += f" --set {setting}={'FOLDER' if name == 'mnist' else 'FILE'}"
    results["recipes"] = {name: results["recipes"][name] for name in names() if name in results["recipes"]}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
