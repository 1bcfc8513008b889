"""Change single bytes anywhere in a run folder, and check resume, replay and predict.

::

    python tests/reliability/changed.py 1000 [SEED]

The run was killed, with commands before and after its newest checkpoint.  Each round changes one byte of one file and
gives a copy of the folder to the three commands.  Each must end with a message and a non-zero exit code (refused), or
print more than for the unchanged folder (reported), or give the same bits (harmless).  Prints one JSON document; exits
with an error at the first unnoticed change that matters.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config import build, prepare
from sigma_run.launcher.configured import open_document, understood
from sigma_run.launcher.group import main as sigma

COMMANDS = ("resume", "replay", "predict")
GOAL = "hooks.finish.when=epoch reaches 12"
RATE = "trainer.optimiser.learning_rate"
Outcome = tuple[int, str, str]  # exit code, results, output


def killed(parent: Path) -> Path:
    """Return the folder of a killed run, with a file to predict next to it."""
    (parent / "x.csv").write_text("0,1\n1,1\n0.5,0.25\n")
    configuration = understood(open_document("xor", [GOAL]))
    with build(configuration, catalogue(), parent / "runs") as environment:
        prepare(configuration, environment)
        trainer = environment.trainer("trainer")
        for rate in (0.3, 0.2):
            trainer.fit(iterations=5)
            environment.set(RATE, rate)
        trainer.fit(iterations=5)
        environment.set(RATE, 0.15)  # after the newest checkpoint
        environment.send("attach", name="extrema", hook={"type": "extrema", "value": "training.loss"})
        run = environment.run_folder
        assert run is not None
        return Path(shutil.copytree(run, parent / "killed"))


def outcome(command: str, run: Path) -> Outcome:
    """Return the result of a command on a run folder."""
    wanted = {
        "resume": ["resume", run, "--json", "--quiet"],
        "replay": ["replay", run, "--json", "--check"],
        "predict": ["predict", run, run.parent / "x.csv", "--json"],
    }
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = sigma([str(part) for part in wanted[command]])
    found = json.loads(out.getvalue()) if out.getvalue() else {}
    for apart in ("seconds", "folder"):
        found.pop(apart, None)
    said = re.sub(r"in \d+\.\d s", "", err.getvalue().replace(str(run), "RUN"))
    return code, json.dumps(found, sort_keys=True), said


def judged(command: str, found: Outcome, whole: Outcome) -> str:
    """Return the outcome of a change; AssertionError if it went unnoticed, or if there is no message."""
    code, result, said = found
    assert "bug in Sigma" not in said, said
    if code != 0:
        assert said.strip(), f"{command}: nothing was said"
        return "refused"
    if result == whole[1]:
        return "harmless" if said == whole[2] else "told, the same bits"
    assert said != whole[2], f"{command}: other bits, and nothing is said"
    return "told"


def change(run: Path, draw: random.Random) -> str:
    """Change one byte of one file, and return which."""
    paths = sorted(path for path in run.rglob("*") if path.is_file() and path.stat().st_size)
    path = draw.choice(paths)
    data = bytearray(path.read_bytes())
    place = draw.randrange(len(data))
    data[place] = draw.choice([byte for byte in range(256) if byte != data[place]])
    path.write_bytes(data)
    return f"{path.relative_to(run)}, byte {place}"


def main(changes: int, seed: int = 0) -> None:
    """Change that many bytes and print the results."""
    print(f"drawn from seed {seed}", file=sys.stderr)
    done, draw = Counter[str](), random.Random(seed)
    with TemporaryDirectory() as folder:
        parent = Path(folder)
        good, copy = killed(parent), parent / "copy"
        whole = {}
        for command in COMMANDS:
            shutil.copytree(good, copy)
            whole[command] = outcome(command, copy)
            assert whole[command][0] == 0, whole[command]
            shutil.rmtree(copy)
        for _ in range(changes):
            shutil.copytree(good, copy)
            what = change(copy, draw)
            shutil.copytree(copy, parent / "spare")
            for command in COMMANDS:
                try:
                    done[f"{command}: {judged(command, outcome(command, copy), whole[command])}"] += 1
                except AssertionError as error:
                    raise AssertionError(f"{what}: {error}") from error
                if command == "resume":  # which writes
                    shutil.rmtree(copy)
                    (parent / "spare").rename(copy)
            shutil.rmtree(copy)
    print(json.dumps({"changes": changes, "unnoticed": 0, "seed": seed, **dict(sorted(done.items()))}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
