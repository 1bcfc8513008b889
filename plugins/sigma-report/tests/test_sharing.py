"""Runs as one file: pages that stand alone, and archives that resume and replay elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import warnings
import zipfile
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.contracts import HookContext, PictureValue, SoundValue, TableValue, TextValue
from sigma_kernel.errors import SigmaWarning
from sigma_report.redacting import Redactor
from sigma_run import load
from sigma_run.launcher import main
from sigma_testing.doing import Do

Rewrite = Callable[[dict[str, bytes]], Any]


class Links(HTMLParser):
    """What a page refers to, and the tags that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links, self.tags = list[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run with everything that others must not see: paths, tokens, monitors, commands from a person."""
    home, disk = tmp_path / "home" / "jane.doe", tmp_path / "disk" / "jane.doe"
    home.mkdir(parents=True)
    disk.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("DASHBOARD_KEY", "key-of-the-environment")
    rows = "\n".join(f"{i % 7},{i % 5},{(i % 7) + (i % 5)}" for i in range(120))
    (disk / "prices.csv").write_text(f"size,age,price\n{rows}\n")
    text = f"""format = 1
[run]
name = "prices"
backend = "numpy"
folder = "{home}/runs"
[data]
dataset = "csv"
path = "{disk}/prices.csv"
target = "price"
split = {{ training = 0.8, validation = 0.2 }}
batch_size = 16
[network]
architecture = "input(2) + output(1) + squared_difference()"
[trainer]
epochs = 3
optimiser = {{ type = "adam", learning_rate = 0.02 }}
[monitors.console]
type = "console"
"""
    (home / "run.toml").write_text(text)
    assert main(["run", str(home / "run.toml"), "--quiet"]) == 0
    (run,) = (home / "runs").iterdir()
    assert main(["resume", str(run), "--epochs", "5", "--set", "trainer.optimiser.learning_rate=0.03", "--quiet"]) == 0
    assert str(disk) in (run / "config.toml").read_text()
    return run


def archive(run: Path, *options: str) -> Path:
    file = run.parent / f"{run.name}.zip"
    assert main(["share", str(run), "--save", str(file), *options]) == 0
    return file


def contents(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def rewritten(file: Path, change: Rewrite) -> Path:
    members = contents(file)
    change(members)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in members.items():
            opened.writestr(name, data)
    return file


# -- pages -------------------------------------------------------------------------------------------------------------
def test_a_page_stands_alone_and_has_everything(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mark", str(flowers), "--name", "Iris <b>", "--note", "a & b", "--tag", "baseline"]) == 0
    capsys.readouterr()
    assert main(["share", str(flowers), "--rows", "3"]) == 0
    out, err = capsys.readouterr()
    text = (flowers / "share.html").read_text()
    (flowers / "marks.json").unlink()
    (flowers / "share.html").unlink()
    page = Links()
    page.feed(text)
    assert out == ""
    assert err.splitlines()[0] == str(flowers / "share.html")
    assert {link.partition(",")[0] for link in page.links} == {"data:image/svg+xml;base64"}
    assert page.tags.isdisjoint({"script", "iframe", "object", "link", "form"})
    assert "default-src 'none'" in text
    for expected in ("Iris &lt;b&gt;", "a &amp; b", "baseline", "finished", "validation.loss", "sepal length (cm)"):
        assert expected in text
    metrics = json.loads((flowers / "summary.json").read_text())["metrics"]
    for name, value in metrics.items():
        assert f'<th scope="row">{name}</th><td>{value:.4g}</td>' in text
    rows = load(flowers).data.rows("validation", range(3))["inputs"]
    for row in rows:
        assert (
            ", ".join(f"{name} {value:.4g}" for name, value in zip(load(flowers).columns["inputs"], row, strict=True))
            in text
        )


def test_rows_of_data_are_on_the_page_by_choice_only(flowers: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["share", str(flowers), "--save", str(page)]) == 0
    assert "Rows of the data" not in page.read_text()
    assert main(["share", str(flowers), "--save", str(page), "--on", "training"]) == 0
    assert len(re.findall(r'<tr><th scope="row">\d+</th><td class=text>', page.read_text())) == 10


def test_nothing_private_is_in_any_file(private: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["share", str(private), "--save", str(page), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["left_out"]
    assert listed[0] == "the data that the run read"
    assert "data.path (in its place: 'prices.csv')" in listed
    assert "run.folder (in its place: '..')" in listed
    assert "monitors (in its place: nothing)" in listed
    members = {"page": page.read_bytes(), **contents(archive(private))}
    for name, data in members.items():
        for word in (b"jane.doe", str(tmp_path).encode(), b"key-of-the-environment"):
            assert word not in data, f"{word!r} is in {name}"
    assert b'path = "prices.csv"' in members["config.toml"]
    assert b"monitors" not in members["config.toml"]


def test_secrets_are_left_out_by_their_names_and_places() -> None:
    table: dict[str, Any] = {
        "monitors": {"browser": {"token": "abc"}},
        "hooks": {"alarm": {"webhook_url": "https://x/abc", "url": "https://jane:pass@host/a", "every": "1 epoch"}},
        "data": {"path": "/srv/data/x.csv", "others": ["~/y.csv", "z.csv"], "API_KEY": "k"},
        "network": {"architecture": "input(3) + /srv/jane/runs"},
        "run": {"folder": "/srv/jane/runs"},
        "upload": {"token": "abc", "access_tokens": ["abc"], "credentials": {"user": "jane", "key": 7}},
        "texts": {"token": 103, "tokens": {"type": "words"}, "tokenizer": "words", "special_tokens": [0, 1]},
    }
    redactor = Redactor(("/srv/jane",))
    redactor.clear(table)
    assert table == {
        "hooks": {"alarm": {"url": "https://host/a", "every": "1 epoch"}},
        "data": {"path": "x.csv", "others": ["y.csv", "z.csv"]},
        "network": {"architecture": "input(3) + runs"},
        "run": {"folder": ".."},
        "upload": {},
        "texts": {"token": 103, "tokens": {"type": "words"}, "tokenizer": "words", "special_tokens": [0, 1]},
    }
    assert {
        "monitors",
        "hooks.alarm.webhook_url",
        "hooks.alarm.url",
        "data.path",
        "data.API_KEY",
    } <= redactor.left_out.keys()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/srv/jane/a.csv: cannot be read", "a.csv: cannot be read"),
        ("see ~/x/y.txt, or https://host/a/b", "see y.txt, or https://host/a/b"),
        ("2 / 3, a/b, 1/2, and/or", "2 / 3, a/b, 1/2, and/or"),
        ("ftp://jane:secret@host/file", "ftp://host/file"),
        ("('/var/lib/x')", "('x')"),
    ],
)
def test_texts_lose_paths_and_logins(text: str, left: str) -> None:
    assert Redactor(()).text(text) == left


def test_private_folders_are_replaced_in_json_whatever_their_letters() -> None:
    redactor = Redactor(("/srv/jäne",))
    text = json.dumps({"a": "/srv/jäne/x/y.csv and /srv/jäne", "b": "/usr/lib"})
    assert json.loads(redactor.json(text)) == {"a": "y.csv and jäne", "b": "/usr/lib"}


# -- archives ----------------------------------------------------------------------------------------------------------
def test_an_archive_replays_to_the_bit_elsewhere(
    private: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, data = archive(private), tmp_path / "elsewhere.csv"
    shutil.move(tmp_path / "disk" / "jane.doe" / "prices.csv", data)
    digest = json.loads((private / "summary.json").read_text())["parameters_sha256"]
    shutil.move(private.parents[1], tmp_path / "gone")
    file = tmp_path / "gone" / "runs" / file.name
    capsys.readouterr()
    assert main(["open", str(file), "--into", str(tmp_path / "theirs"), "--replay", "--data", str(data)]) == 0
    assert "replay is identical" in capsys.readouterr().err
    (theirs,) = (tmp_path / "theirs").iterdir()
    assert theirs.name.startswith("prices-")
    assert json.loads((theirs / "summary.json").read_text())["parameters_sha256"] == digest
    assert main(["replay", str(theirs), "--check", "--quiet", "--data", str(data)]) == 0


def test_an_archive_resumes_to_the_bits_of_the_original(private: Path, tmp_path: Path) -> None:
    file, data = archive(private), str(tmp_path / "disk" / "jane.doe" / "prices.csv")
    assert main(["open", str(file), "--into", str(tmp_path / "theirs")]) == 0
    (theirs,) = (tmp_path / "theirs").iterdir()
    for run in (private, theirs):
        more = [] if run is private else ["--data", data]
        assert main(["resume", str(run), "--epochs", "8", "--quiet", *more]) == 0
    ours, other = (json.loads((run / "summary.json").read_text()) for run in (private, theirs))
    assert (ours["epochs"], ours["parameters_sha256"]) == (8, other["parameters_sha256"])
    assert main(["replay", str(theirs), "--check", "--quiet"]) == 0


def test_a_run_without_secrets_keeps_every_byte_of_its_journal(flowers: Path, tmp_path: Path) -> None:
    copy = tmp_path / "plain"
    shutil.copytree(flowers, copy)
    text = (copy / "config.toml").read_text()
    folder = re.search(r'folder = "(/[^"]+)"', text)
    if folder is None:
        members = contents(archive(copy))
        assert members["journal.jsonl"] == (copy / "journal.jsonl").read_bytes()
    members = contents(archive(copy))
    assert members["curves.bin"] == (copy / "curves.bin").read_bytes()
    (state,) = (name for name in members if name.endswith("state.safetensors"))
    assert members[state] == (copy / state).read_bytes()


def test_an_archive_is_the_same_file_again(private: Path) -> None:
    first = archive(private).read_bytes()
    assert archive(private).read_bytes() == first


# -- mistakes ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--save", "run.pdf"], "--save run.pdf: is neither a page nor an archive. Name a file with .html or .zip."),
        (["--save", "run.zip", "--rows", "2"], "--rows 2: an archive holds no data. Save a page, FILE.html."),
        (["--on", "holidays"], "--on holidays: there is no such split. There are: training, validation."),
        (["--save", "none/run.html"], "--save none/run.html: cannot be written: No such file or directory."),
        (["--save", "none/run.zip"], "none/run.zip: cannot be written: No such file or directory."),
    ],
)
def test_what_cannot_be_shared_is_one_sentence(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    options: list[str], why: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["share", str(flowers), *options]) in (1, 2)
    assert why in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_a_run_that_is_written_to_is_not_archived(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sigma_store.bundle.is_locked", lambda run: True)
    assert main(["share", str(flowers), "--save", str(tmp_path / "a.zip")]) == 1
    assert "a process writes to it. Wait for its end, or stop it." in capsys.readouterr().err


# -- hostile archives --------------------------------------------------------------------------------------------------
def put(name: str, data: bytes) -> Rewrite:
    return lambda members: members.update({name: data})


def drop(name: str) -> Rewrite:
    return lambda members: members.pop(name)


def replace(name: str, old: bytes, new: bytes) -> Rewrite:
    def change(members: dict[str, bytes]) -> None:
        assert old in members[name]
        members[name] = members[name].replace(old, new)

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (put("../evil.json", b"{}"), "has '../evil.json', which is not a file of a run"),
        (put("/etc/passwd", b""), "which is not a file of a run"),
        (put("checkpoints/../../evil.json", b""), "which is not a file of a run"),
        (put("checkpoints/trainer/3/state.pkl", b""), "which is not a file of a run"),
        (put("checkpoints/trainer/3/../../../evil.json", b""), "which is not a file of a run"),
        (put("code.py", b""), "has 'code.py', which is not a file of a run"),
        (put("a\\b.json", b""), "which is not a file of a run"),
        (put(".lock", b""), "which is not a file of a run"),
        (drop("bundle.json"), "has no bundle.json"),
        (drop("config.toml"), "has no config.toml"),
        (drop("journal.jsonl"), "has no journal.jsonl"),
        (put("bundle.json", b"[]"), "not a JSON object"),
        (put("bundle.json", b'{"format": 2, "run": "a"}'), "has format 2, and this version reads 1"),
        (put("bundle.json", b'{"format": 1, "run": "../a"}'), "names the run '../a'"),
        (put("bundle.json", b'{"format": 1, "run": 3}'), "names the run 3"),
        (replace("config.toml", b"seed", b"seeds"), "was changed since the run wrote it"),
        (replace("journal.jsonl", b'"iteration": 0', b'"iteration": 1'), "does not follow from the lines before it"),
    ],
)
def test_a_hostile_archive_is_refused_and_leaves_nothing(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Rewrite, why: str
) -> None:
    file = tmp_path / "in" / "run.zip"
    file.parent.mkdir()
    assert main(["share", str(flowers), "--save", str(file)]) == 0
    rewritten(file, change)
    capsys.readouterr()
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) in (1, 2)
    out, err = capsys.readouterr()
    assert why in err
    assert "bug in Sigma" not in err
    assert out == ""
    assert {path.name for path in tmp_path.rglob("*")} <= {"in", "run.zip", "out"}


def test_an_archive_that_would_fill_the_disk_is_refused(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = archive_at(flowers, tmp_path / "run.zip")
    whole = sum(map(len, contents(file).values()))
    for limit, why in (("LARGEST", "bytes from"), ("DENSEST", "bytes from"), ("MEMBERS", "a run has at most")):
        with monkeypatch.context() as patched:
            patched.setattr(f"sigma_store.bundle.{limit}", 1)
            assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 1
        assert why in capsys.readouterr().err
    with monkeypatch.context() as patched:
        patched.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": whole - 1}))
        assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 1
    assert f"unpacks to {whole:,} bytes, and {whole - 1:,} are free in" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_longer_than_its_archive_says_is_refused(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = archive_at(flowers, tmp_path / "run.zip")
    data = file.read_bytes()
    with zipfile.ZipFile(file) as opened:
        size = opened.getinfo("plugins.json").file_size
    at = data.rindex(b"plugins.json") - 46 + 24  # the size in the central directory
    assert data[at : at + 4] == size.to_bytes(4, "little")
    file.write_bytes(data[:at] + (10).to_bytes(4, "little") + data[at + 4 :])
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 1
    assert "is not a whole zip archive" in capsys.readouterr().err
    assert [*(tmp_path / "out").iterdir()] == []


@pytest.mark.parametrize("content", [b"", b"PK", b"hello" * 1000, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_archive_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    (tmp_path / "run.zip").write_bytes(content)
    assert main(["open", str(tmp_path / "run.zip"), "--into", str(tmp_path / "out")]) == 1
    assert "is not a whole zip archive" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_link_a_folder_and_nothing_are_no_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link.zip").symlink_to(tmp_path / "a.zip")
    for path, why in (("link.zip", "not a regular file"), (".", "not a regular file"), ("none.zip", "No such file")):
        assert main(["open", str(tmp_path / path)]) == 1
        assert why in capsys.readouterr().err


def test_a_damaged_byte_of_an_archive_is_found(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.zip"
    assert main(["share", str(flowers), "--save", str(file)]) == 0
    data = file.read_bytes()
    for at in range(40, len(data), len(data) // 25):
        file.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        code = main(["open", str(file), "--into", str(tmp_path / "out")])
        assert code in (0, 1, 2)
        assert "bug in Sigma" not in capsys.readouterr().err


def test_links_in_an_archive_become_files(flowers: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.zip"
    assert main(["share", str(flowers), "--save", str(file)]) == 0
    members = contents(file)
    with zipfile.ZipFile(file, "w") as opened:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16 if name == "plugins.json" else 0o100644 << 16
            opened.writestr(info, b"/etc/passwd" if name == "plugins.json" else data)
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 0
    (run,) = (tmp_path / "out").iterdir()
    assert not (run / "plugins.json").is_symlink()
    assert (run / "plugins.json").read_text() == "/etc/passwd"


def test_a_name_that_stands_twice_is_refused(flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = archive_at(flowers, tmp_path / "run.zip")
    with zipfile.ZipFile(file, "a") as opened, pytest.warns(UserWarning, match="Duplicate name"):
        opened.writestr("config.toml", "format = 1")
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 1
    assert "has two files of the same name" in capsys.readouterr().err


def archive_at(run: Path, file: Path) -> Path:
    assert main(["share", str(run), "--save", str(file)]) == 0
    return file


def test_monitors_in_an_archive_are_refused(private: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sigma_store import pack_run

    file = tmp_path / "run.zip"
    text = (private / "config.toml").read_bytes()
    pack_run(private, file, "prices", {"config.toml": text}, lambda text: text, [], print)
    assert b"[monitors" in text
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 2
    assert "its configuration has monitors, which `sigma share` leaves out. Ask for another." in capsys.readouterr().err
    assert [*(tmp_path / "out").iterdir()] == []


# -- hooks that tell people --------------------------------------------------------------------------------------------
@pytest.fixture
def telling(flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a run with a hook that posts to a webhook, which cannot be reached."""
    monkeypatch.setenv("PLACE", "http://127.0.0.1:1/")
    text = (flowers.parents[1] / "run.toml").read_text()
    hook = '[hooks.tell]\ntype = "webhook"\nurl = "$PLACE"\nwhen = "epoch reaches 2"\n'
    file, folder = tmp_path / "telling.toml", tmp_path / "told"
    file.write_text(text.replace(str(flowers.parent), str(folder)) + hook)
    assert main(["run", str(file), "--quiet"]) == 0
    (run,) = folder.iterdir()
    return run


def test_hooks_that_tell_people_are_left_out_and_the_archive_replays(
    telling: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["share", str(telling), "--save", str(page), "--json"]) == 0
    assert "hooks.tell (in its place: nothing)" in json.loads(capsys.readouterr().out)["left_out"]
    assert "$PLACE" not in page.read_text()
    file = archive(telling)
    assert b"$PLACE" not in contents(file)["config.toml"]
    assert main(["open", str(file), "--into", str(tmp_path / "theirs"), "--replay"]) == 0
    (theirs,) = (tmp_path / "theirs").iterdir()
    assert main(["resume", str(theirs), "--epochs", "32", "--quiet"]) == 0


@pytest.mark.parametrize("several", [False, True])
def test_hooks_that_tell_people_in_an_archive_are_refused(
    telling: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], several: bool
) -> None:
    from sigma_store import pack_run

    file, text = tmp_path / "run.zip", (telling / "config.toml").read_bytes()
    text = text.replace(b"[hooks", b"[trainers.one.hooks") if several else text
    pack_run(telling, file, "told", {"config.toml": text}, lambda text: text, [], print)
    place = "trainers.one.hooks.tell" if several else "hooks.tell"
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"{place} would send messages from this machine" in error
    assert "Ask for another." in error
    assert [*(tmp_path / "out").iterdir()] == []


def test_hooks_of_plugins_that_are_not_here_are_refused_as_nobody_knows_whom_they_tell(
    telling: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sigma_store import pack_run

    file, text = tmp_path / "run.zip", (telling / "config.toml").read_bytes()
    text = re.sub(rb'type = "(sigma-hooks:)?webhook"', b'type = "acme-zoo:tell"', text)
    pack_run(telling, file, "told", {"config.toml": text}, lambda text: text, [], print)
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) != 0
    assert "hook 'tell': no installed plugin is called 'acme-zoo'" in capsys.readouterr().err
    assert [*(tmp_path / "out").iterdir()] == []
    table = {"hooks": {"tell": {"type": "acme-zoo:tell"}}}
    Redactor(()).clear(table)
    assert table == {"hooks": {"tell": {"type": "acme-zoo:tell"}}}


def test_hooks_that_tell_people_and_were_attached_are_neither_packed_nor_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sigma_run import from_file

    monkeypatch.setenv("PLACE", "http://127.0.0.1:1/")
    with from_file("iris", "trainer.epochs=2", "run.control=false", folder=tmp_path / "runs") as sigma:
        sigma.attach("tell", {"type": "webhook", "url": "$PLACE"})
        sigma.attach("stop", {"type": "time_limit", "limit": "2 hours"})
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    assert main(["share", str(run), "--save", str(tmp_path / "x.zip")]) == 2
    assert "commands attached or changed tell, which an archive leaves out" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr("sigma_report.sharing.list_attached", lambda *given: [])
        file = archive(run)
    assert main(["open", str(file), "--into", str(tmp_path / "out")]) == 2
    assert "tell would send messages from this machine" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["set", "detach"])
def test_a_run_whose_commands_changed_a_hook_that_tells_people_is_shared_as_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    from sigma_run import from_file

    monkeypatch.setenv("PLACE", "http://127.0.0.1:1/")
    hook = 'hooks.tell={type="webhook", url="$PLACE", on=["failure"]}'
    with from_file("iris", hook, "trainer.epochs=2", "run.control=false", folder=tmp_path / "runs") as sigma:
        if command == "set":
            sigma.set("trainer.hooks.tell.every", "2 epochs")
        else:
            sigma.detach("tell")
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    assert main(["share", str(run), "--save", str(tmp_path / "x.zip")]) == 2
    assert "commands attached or changed tell, which an archive leaves out" in capsys.readouterr().err
    assert main(["share", str(run), "--save", str(tmp_path / "x.html")]) == 0


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ([["tell", {"type": "webhook"}], ["stop", None]], [("tell", {"type": "webhook"}), ("stop", None)]),
        ({"mail": "email"}, [("mail", "email")]),
        (7, []),
        ([[]], []),
    ],
)
def test_hooks_that_were_attached_are_read_from_checkpoints_as_a_resumed_run_reads_them(
    hooks: Any, expected: list[Any]
) -> None:
    from sigma_report.outward import list_changed

    assert [*list_changed({"values": {"changes": {"hooks": hooks}}})] == expected
    assert [*list_changed({"values": {"undo": [{"changes": {"hooks": hooks}}], "changes": 7}})] == expected


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--replay", "--resume"], "--replay --resume: replay first"),
        (["--data", "x.csv"], "--data x.csv: nothing is read. Pass --replay or --resume as well."),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], why: str
) -> None:
    file = archive_at(flowers, tmp_path / "run.zip")
    assert main(["open", str(file), "--into", str(tmp_path / "out"), *options]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_opening_twice_makes_two_runs(flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = archive_at(flowers, tmp_path / "run.zip")
    capsys.readouterr()
    folders: set[str] = set()
    for _ in range(2):
        assert main(["open", str(file), "--into", str(tmp_path / "out"), "--json"]) == 0
        result: Mapping[str, str] = json.loads(capsys.readouterr().out)
        folders.add(result["folder"])
    assert len(folders) == 2


# -- media -------------------------------------------------------------------------------------------------------------
def publish(context: HookContext) -> None:
    iteration = context.moment.iteration
    draw = np.random.default_rng(iteration)
    context.publish("shown.picture", PictureValue(draw.integers(0, 256, (6, 6), np.uint8), caption="<b>"))
    context.publish("shown.text", TextValue(f"<i> in /srv/jane.doe/x.txt {iteration}"))
    context.publish("shown.sound", SoundValue(np.zeros(20), 8000))
    context.publish("shown.table", TableValue(["a", "b"], [["/srv/jane.doe/y", 1.5]]))


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    """Return a run with ten moments of four media."""
    sigma = Environment("shown", seed=0, folder=tmp_path / "runs")
    sigma.create_trainer(
        data="iris",
        network="input(4) + output(3) + softmax_cross_entropy()",
        optimiser={"type": "adam", "learning_rate": 0.01},
        hooks={"show": Do(does=publish, writes=["shown.*"])},
        epochs=10,
    )
    with sigma, warnings.catch_warnings():
        warnings.simplefilter("ignore", SigmaWarning)  # the hook cannot be written down
        sigma.run()
    assert sigma.run_folder is not None
    return sigma.run_folder


def figures(page: str) -> list[str]:
    return re.findall(r"<figcaption>(.*?)</figcaption>", page)


def test_a_page_has_some_moments_of_each_medium(shown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["share", str(shown), "--json"]) == 0
    left_out = json.loads(capsys.readouterr().out)["left_out"]
    text = (shown / "share.html").read_text()
    page = Links()
    page.feed(text)
    assert "16 of 40 media of the run folder" in left_out
    assert len(figures(text)) == 24
    assert figures(text)[0] == "epoch 1, iteration 2: &lt;b&gt;"
    assert figures(text)[5].startswith("epoch 10, iteration 20")
    assert {link.partition(",")[0] for link in page.links} == {
        "data:image/svg+xml;base64", "data:image/png;base64", "data:audio/wav;base64"
    }  # fmt: skip
    assert page.tags.isdisjoint({"script", "i", "b"})
    assert "&lt;i&gt; in x.txt 2</pre>" in text
    assert "jane.doe" not in text
    assert "media-src data:" in text


def test_how_many_moments_are_shown_is_a_choice_within_a_size(
    shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "page.html"
    for count, wanted in ((0, 0), (1, 4), (100, 40)):
        assert main(["share", str(shown), "--media", str(count), "--save", str(file)]) == 0
        assert len(figures(file.read_text())) == wanted
    monkeypatch.setattr("sigma_report.media.MOST_BYTES", 1000)
    assert main(["share", str(shown), "--media", "100", "--save", str(file)]) == 0
    assert 0 < len(figures(file.read_text())) < 40
    monkeypatch.setattr("sigma_report.media.MOST_BYTES", 120)
    assert main(["share", str(shown), "--media", "100", "--save", str(file)]) == 0
    assert 0 < len(figures(file.read_text())) < 4, "the last moments of the smallest names"


def test_a_damaged_medium_is_left_out_with_a_word(shown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (shown / "media").glob("*.wav"):
        path.write_bytes(b"other")
    assert main(["share", str(shown)]) == 0
    assert "the page lacks a value: media/" in capsys.readouterr().err
    assert "audio" not in re.sub(r"media-src.*", "", (shown / "share.html").read_text()).partition("<body>")[2]
