"""Test and measure the backend on a machine with a GPU: ``python -m sigma_backend_cupy.selftest``.

Runs the conformance suite of backends, trains every recipe, and benchmarks the larger ones; then writes the table of
docs/performance.md, to the page given with ``--write``. The exit code is 1 if there is no GPU, or something failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from sigma_backend_cupy.backend import CupyBackend
from sigma_kernel.errors import SigmaConfigError

BENCHMARKS = ("mnist", "bench-mlp-large", "bench-cnn", "bench-resnet", "bench-transformer", "bench-lstm")
ROUNDS = 9
NOT_MEASURED = "not measured"
BEGIN, END = "<!-- gpu: begin -->", "<!-- gpu: end -->"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def main(arguments: Sequence[str] | None = None, run: Run = subprocess.run) -> int:
    """Test, train and measure; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m sigma_backend_cupy.selftest", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page with the table: docs/performance.md")
    parser.add_argument("--peers", default="", metavar="A,B", help="peers to measure as well; see sigma bench --help")
    given = parser.parse_args(arguments)
    page: Path | None = given.write
    try:
        about = CupyBackend().runtime
    except SigmaConfigError as error:
        print(f"NO GPU: nothing was tested and nothing was measured.\n{error}", file=sys.stderr)
        return 1
    failed = [what for what, passed in _checks(run) if not passed]
    table = rows(
        {name: time_contestants(name, given.peers, run) for name in BENCHMARKS}, about, date.today().isoformat()
    )
    print(table)
    if page:
        page.write_text(fill_page(page.read_text(encoding="utf-8"), table), encoding="utf-8")
    print(f"failed: {', '.join(failed)}" if failed else "everything passed", file=sys.stderr)
    return int(bool(failed))


def _checks(run: Run) -> Iterator[tuple[str, bool]]:
    """Yield the names of tests, and whether each passed."""
    suite = Path(__file__).with_name("suite.py")
    yield "the conformance suite", run([sys.executable, "-m", "pytest", "-q", str(suite)], check=False).returncode == 0
    listed = run([*SIGMA, "recipes", "--json"], check=False, capture_output=True, text=True)
    for recipe in json.loads(listed.stdout)["recipes"]:
        name = recipe["name"]
        print(f"training {name}", file=sys.stderr)
        yield name, run([*SIGMA, "run", name, "--backend", "cupy", "--quiet"], check=False).returncode == 0


SIGMA = (sys.executable, "-m", "sigma_run")


def time_contestants(recipe: str, peers: str, run: Run) -> Mapping[str, float]:
    """Return the median milliseconds per iteration of each contestant in one benchmark; none if it failed."""
    command = [*SIGMA, "bench", recipe, "--backends", "cupy", "--peers", peers, "--rounds", str(ROUNDS), "--json"]
    done = run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"{recipe}: no benchmark\n{done.stderr}", file=sys.stderr)
        return {}
    contestants: list[dict[str, Any]] = json.loads(done.stdout)["contestants"]
    return {contestant["name"]: 1e3 * contestant["median_s"] for contestant in contestants}


def rows(found: Mapping[str, Mapping[str, float]], about: Mapping[str, str], day: str) -> str:
    """Return the table of times per iteration, in milliseconds."""
    names = [*dict.fromkeys(name for times in found.values() for name in times)] or ["cupy"]
    lines = [
        f"Measured on {day}: {', '.join(f'{name} {value}' for name, value in about.items())}.",
        "",
        f"| recipe, ms | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for recipe, times in found.items():
        cells = (f"{times[name]:.3f}" if name in times else NOT_MEASURED for name in names)
        lines.append(f"| `{recipe}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def fill_page(page: str, table: str) -> str:
    """Return a page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main())
