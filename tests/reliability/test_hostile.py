"""Malicious run folders: nothing is executed, nothing outside is touched, and everything is reported.

Files are replaced by bytes, pickles, links, pipes, directories and endless files; manifests, plugins.json, summaries,
journals and configurations are changed anywhere inside, with valid checksums.  Then the commands that read a run folder
run on it.  An audit hook of the interpreter records the files that they open and the processes that they start.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings, strategies as st

from sigma_run.launcher.group import main
from sigma_store.checkpoints import store as checkpoint
from sigma_store.checkpoints.store import ARRAYS, MANIFEST, SEAL
from tests.reliability.amount import LONG, SEED, amount

EXAMPLES = amount(10, 40, 500)
PATIENCE = 60  # seconds for one command
DOCUMENTS = ("plugins.json", "summary.json", "journal.jsonl", "config.toml")
FORBIDDEN = {
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.startfile", "subprocess.Popen", "pickle.find_class",
    "socket.connect",
}  # fmt: skip
SECRET = "4711 is the number of the safe\n"
pytestmark = [
    pytest.mark.rooms,
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes, and links without privileges"),
]


# -- what is watched ---------------------------------------------------------------------------------------------------
class Watch:
    """Record forbidden operations while files are read."""

    def __init__(self) -> None:
        self.outside: str | None = None
        self.seen: list[str] = []
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.outside is None:
            return
        if event in FORBIDDEN:
            self.seen.append(f"{event} {arguments}")
        paths = [os.path.realpath(one) for one in arguments[:2] if isinstance(one, str | os.PathLike)]
        if event.partition(".")[0] in ("open", "os", "shutil") and event not in ("os.listdir", "os.scandir"):
            self.seen.extend(f"{event} {path}" for path in paths if path.startswith(self.outside))


WATCH = Watch()


class Bomb:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("echo bang",)


# -- attacks -----------------------------------------------------------------------------------------------------------
def ordinary(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20


def sealed(folder: Path) -> None:
    """Recompute the checksums of a checkpoint, as far as possible."""
    if not ordinary(folder / MANIFEST):
        return
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        data = (folder / ARRAYS).read_bytes() if ordinary(folder / ARRAYS) else b""
        manifest["files"], manifest["sizes"] = {ARRAYS: hashlib.sha256(data).hexdigest()}, {ARRAYS: len(data)}
        (folder / MANIFEST).write_text(json.dumps(manifest))
    except (ValueError, TypeError, RecursionError):
        pass  # only the manifest's checksum can be recomputed
    if ordinary(folder / SEAL):
        digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
        (folder / SEAL).write_text(f"{digest}  {MANIFEST}\n")


def endless(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)  # sparse: it takes no space


def replace(path: Path, outside: Path, how: str, draw: random.Random) -> None:
    """Replace a file or a folder by something else."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    made: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        "bytes": lambda: path.write_bytes(draw.randbytes(draw.randrange(200))),
        "pickle": lambda: path.write_bytes(pickle.dumps(Bomb())),
        "deep": lambda: path.write_text(draw.choice(["[", '{"a":', "a = [", "a."]) * 100_000),
        "endless": lambda: endless(path),
        "link": lambda: path.symlink_to(outside / draw.choice(["secret", "folder", "nowhere"])),
        "pipe": lambda: os.mkfifo(path),
        "folder": lambda: path.mkdir(),
    }
    made[how]()


REPLACED = ("nothing", "bytes", "pickle", "deep", "endless", "link", "pipe", "folder")
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 2**63, 10**400, 0.5, float("nan"), float("inf"), "", "../../outside/secret", "/etc/passwd", "\0",
    "trainer", "\ud800", [], {}, [[]], {"": {}}, {"type": "csv", "path": "../outside/secret"}, {"type": "os:system"},
)  # fmt: skip


def changed(value: Any, draw: random.Random) -> Any:
    """Return plain values with one of them replaced, removed or renamed."""
    if isinstance(value, dict | list) and value and draw.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key, found = draw.choice(keys), value.copy()
        match draw.randrange(8):
            case 0:
                del found[key]
            case 1 if isinstance(found, dict):
                found[draw.choice(["../x", "/x", "a.b", "", *map(str, keys)])] = found.pop(key)
            case _:
                found[key] = changed(found[key], draw)
        return found
    return draw.choice(HOSTILE)


def rewrite(path: Path, draw: random.Random) -> None:
    """Change a document in one place."""
    if not ordinary(path):
        return
    text = path.read_text(errors="replace")
    if path.suffix == ".toml":
        start, end = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        words = ["", "[", '"', "[[a]]\n", "9" * 30, "..", "-1", "nan", "1e999", "= {}", '"/etc/passwd"', "\0", "\ud83d"]
        text = text[:start] + draw.choice(words) + text[min(end, start + draw.randrange(12)) :]
        path.write_text(text, errors="replace")
        return
    lines = text.split("\n") if path.suffix == ".jsonl" else [text]
    which = draw.randrange(len(lines))
    try:
        lines[which] = json.dumps(changed(json.loads(lines[which]), draw))
    except (ValueError, RecursionError):
        lines[which] = draw.choice(["{", "[1]", '{"format": 2}', "\x7f"])
    path.write_text("\n".join(lines))


def reheaded(path: Path, draw: random.Random) -> None:
    """Let arrays declare something else."""
    if not ordinary(path):
        return
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    try:
        text = json.dumps(changed(json.loads(data[8 : 8 + length]), draw)).encode()
    except (ValueError, RecursionError):
        return
    length = draw.choice([len(text), len(text), len(text), 2**63, 0])
    path.write_bytes(length.to_bytes(8, "little") + text + data[8 + length :])


def leads_outside(checkpoint: Path) -> bool:
    """Return whether one of the folders above a checkpoint has become a link."""
    return checkpoint.parent.is_symlink() or checkpoint.parent.parent.is_symlink()


def attack(run: Path, outside: Path, draw: random.Random) -> None:
    """Apply one attack to a run folder."""
    newest = draw.choice(sorted(run.glob("checkpoints/trainer/*")) or [run / "checkpoints"])
    if leads_outside(newest):
        return  # since an earlier attack; nothing is to be changed there
    match draw.randrange(5):
        case 0:
            above = [newest, newest.parent, newest.parent.parent]
            files = [newest / name for name in (ARRAYS, MANIFEST, SEAL)] if newest.is_dir() else []
            victim = draw.choice([*files, *files, *(path for path in above if run in path.parents)])
            replace(victim, outside, draw.choice(REPLACED), draw)
        case 1:
            replace(run / draw.choice(DOCUMENTS), outside, draw.choice(REPLACED), draw)
        case 2:
            rewrite(newest / MANIFEST, draw)
        case 3:
            rewrite(run / draw.choice(DOCUMENTS), draw)
        case 4:
            reheaded(newest / ARRAYS, draw)
    if draw.random() < 0.8 and newest.is_dir() and not leads_outside(newest) and not newest.is_symlink():
        sealed(newest)


# -- requirements ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run with three checkpoints."""
    home = tmp_path_factory.mktemp("hostile")
    goal = "hooks.finish.when=epoch reaches 3"
    saving = 'hooks.save={ type = "checkpoint", every = "1 epoch" }'
    assert main(["run", "xor", "--quiet", "--set", goal, "--set", saving, "--set", f"run.folder={home}"]) == 0
    (run,) = home.iterdir()
    (home / "samples.csv").write_text("0,1\n")
    outside = home / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    shutil.copytree(checkpoint.list_checkpoints(run, "trainer")[-1], outside / "folder" / "9")
    return run


@pytest.fixture(scope="module")
def limited() -> Iterator[None]:
    """Set a time limit for everything."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"nothing came of it for {PATIENCE} seconds")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def commands(run: Path, samples: Path) -> list[list[str]]:
    return [
        ["predict", str(run), str(samples), "--json"], ["evaluate", str(run)],
        ["replay", str(run), "--quiet"], ["resume", str(run), "--quiet"],
    ]  # fmt: skip


@seed(SEED)
@settings(max_examples=EXAMPLES, phases=[Phase.generate], report_multiple_bugs=False)
@given(draw=st.randoms())
def test_any_content_of_a_run_folder_is_used_or_refused_in_a_sentence(
    ran: Path, limited: None, draw: random.Random
) -> None:
    outside = ran.parent / "outside"
    run = Path(shutil.copytree(ran, ran.parent / "spoiled" / ran.name))
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    try:
        for _ in range(draw.choice([1, 1, 2, 3])):
            attack(run, outside, draw)
        for command in draw.sample(commands(run, ran.parent / "samples.csv"), 2):
            WATCH.outside, WATCH.seen = str(outside), []
            signal.alarm(PATIENCE)
            with redirect_stdout(StringIO()) as said, redirect_stderr(said):
                code = main(command)
            WATCH.outside = None
            assert code in (0, 1, 2, 3), (command, said.getvalue())
            for word in ("Traceback", "bug in Sigma", SECRET.strip()):
                assert word not in said.getvalue(), (command, said.getvalue())
            assert not WATCH.seen, command
        assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    finally:
        WATCH.outside = None
        signal.alarm(0)
        shutil.rmtree(ran.parent / "spoiled")


def test_any_value_of_a_state_tree_is_used_or_refused_with_a_message(ran: Path, limited: None) -> None:
    good = checkpoint.read(checkpoint.list_checkpoints(ran, "trainer")[-1])
    some = zip(good.values, cycle((None, -1, 0.5, [[]])), strict=False)
    for name, value in product(good.values, HOSTILE) if LONG else some:
        run = Path(shutil.copytree(ran, ran.parent / "spoiled" / ran.name))
        newest = checkpoint.list_checkpoints(run, "trainer")[-1]
        manifest = json.loads((newest / MANIFEST).read_text())
        manifest["values"][name] = value
        (newest / MANIFEST).write_text(json.dumps(manifest))
        sealed(newest)
        signal.alarm(PATIENCE)  # for all of them
        with redirect_stdout(StringIO()) as said, redirect_stderr(said):
            codes = [main(command) for command in commands(run, ran.parent / "samples.csv")]
        shutil.rmtree(ran.parent / "spoiled")
        assert set(codes) <= {0, 1, 2, 3}, (name, value, said.getvalue())
        assert "bug in Sigma" not in said.getvalue(), (name, value, said.getvalue())
