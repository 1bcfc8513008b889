"""Where sockets lie: nothing of another user is used, and what is dead is removed."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_monitor_control import ControlMonitor, connect, places
from sigma_monitor_control.discovery import running
from sigma_testing import FakeView


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_directory_and_the_socket_are_the_users_alone(home: Path) -> None:
    listener, path = places.open_listener()
    listener.close()
    assert (mode(home), mode(path)) == (0o700, 0o600)
    assert path.parent == home
    assert stat.S_ISSOCK(path.lstat().st_mode)


def test_the_directory_of_the_session_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/var")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    own = f"sigma-{os.getuid()}"
    assert places.directories() == [Path("/run/user/7/sigma"), Path("/var") / own]
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", unset)
        assert places.directories()[0] == Path("/var") / own


def spoil_with_a_link(home: Path) -> None:
    (home.parent / "elsewhere").mkdir(0o700)
    home.symlink_to(home.parent / "elsewhere")


def spoil_with_a_file(home: Path) -> None:
    home.write_text("")


def spoil_with_an_open_directory(home: Path) -> None:
    home.mkdir()
    home.chmod(0o750)


@pytest.mark.parametrize("spoil", [spoil_with_a_link, spoil_with_a_file, spoil_with_an_open_directory])
def test_a_directory_that_others_could_use_is_not_used(home: Path, spoil: Any) -> None:
    spoil(home)
    with pytest.raises(SigmaStateError, match="no socket can be created .*is not a directory of this user alone"):
        places.open_listener()
    assert [*(home.parent / "elsewhere").glob("*")] == []
    assert [*places.sockets()] == []


def test_a_directory_of_another_user_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(0o700)
    monkeypatch.setattr(os, "getuid", lambda: home.lstat().st_uid + 1)
    assert not places.is_private(home)
    with pytest.raises(SigmaStateError, match="is not a directory of this user alone"):
        places.open_listener()


def test_the_second_directory_is_used_where_the_first_cannot_be(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "directories", lambda: [home.parent / "none" / "sigma", home])
    listener, path = places.open_listener()
    listener.close()
    assert path.parent == home


def test_a_path_that_is_too_long_for_a_socket_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "directories", lambda: [home.parent / ("x" * 100)])
    with pytest.raises(SigmaStateError, match="is too long a path for a socket"):
        places.open_listener()


def test_a_socket_that_nobody_listens_to_is_removed(home: Path) -> None:
    listener, path = places.open_listener()
    listener.close()
    assert [*places.sockets()] == [path]
    assert running() == []
    assert not path.exists()


def test_what_is_no_socket_is_left_alone(home: Path) -> None:
    home.mkdir(0o700)
    (home / "1-a.sock").write_text("mine")
    (home / "2-b.sock").symlink_to("/dev/null")
    assert running() == []
    assert (home / "1-a.sock").read_text() == "mine"
    assert (home / "2-b.sock").is_symlink()


# -- the run folder ----------------------------------------------------------------------------------------------------
def test_the_run_folder_names_socket_process_and_its_start_while_it_trains(home: Path, tmp_path: Path) -> None:
    seen: list[Any] = []

    class Watched(FakeView):
        def wait(self, seconds: float) -> bool:
            seen.append(json.loads((tmp_path / "control.json").read_text()))
            return True

    ControlMonitor().watch(Watched(folder=tmp_path))
    (about,) = seen
    assert (about["format"], about["process"], about["host"]) == (1, os.getpid(), socket.gethostname())
    assert about["started"] == places.read_start_time(os.getpid())
    assert Path(about["socket"]).parent == home
    assert [*tmp_path.iterdir()] == [*home.iterdir()] == []  # both are removed at the end


def test_what_another_run_has_written_meanwhile_is_left_alone(home: Path, tmp_path: Path) -> None:
    class Replaced(FakeView):
        def wait(self, seconds: float) -> bool:
            (tmp_path / "control.json").write_text('{"socket": "another"}')
            return True

    ControlMonitor().watch(Replaced(folder=tmp_path))
    assert (tmp_path / "control.json").read_text() == '{"socket": "another"}'


def test_nothing_is_written_through_a_link(home: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "victim").write_text("mine")
    (run / "control.json").symlink_to(tmp_path / "victim")
    ControlMonitor().watch(ended(FakeView(folder=run)))
    assert (tmp_path / "victim").read_text() == "mine"


def ended(view: FakeView) -> FakeView:
    view.over.set()
    return view


def test_a_run_folder_that_cannot_be_written_to_is_no_obstacle(home: Path, tmp_path: Path) -> None:
    ControlMonitor().watch(ended(FakeView(folder=tmp_path / "gone")))


def test_control_of_a_process_that_is_gone_is_removed(home: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    about = {"socket": str(home / "1-a.sock"), "process": int(done.stdout), "started": 1, "host": socket.gethostname()}
    file = tmp_path / "control.json"
    file.write_text(json.dumps(about))
    with pytest.raises(SigmaStateError, match="is not training"):
        connect(tmp_path)
    assert not file.exists()


@pytest.mark.parametrize(
    "other", [{"host": "elsewhere"}, {"process": os.getpid(), "started": places.read_start_time(os.getpid())}]
)
def test_control_of_a_process_elsewhere_or_alive_is_kept(home: Path, tmp_path: Path, other: dict[str, Any]) -> None:
    about = {"socket": str(home / "1-a.sock"), "process": 1, "started": -1, "host": socket.gethostname(), **other}
    (tmp_path / "control.json").write_text(json.dumps(about))
    with pytest.raises(SigmaStateError, match="is not training"):
        connect(tmp_path)
    assert (tmp_path / "control.json").exists()


def test_an_id_that_another_process_has_by_now_does_not_make_a_run_alive() -> None:
    here = {"process": os.getpid(), "started": places.read_start_time(os.getpid()), "host": socket.gethostname()}
    assert not places.is_dead(here)
    assert places.is_dead({**here, "started": 1})


@pytest.mark.parametrize("text", ["", "[]", "{", '{"socket": 3}', "[" * 9_000, "\xff"])
def test_damaged_control_is_no_obstacle(home: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "control.json").write_text(text, "latin-1")
    with pytest.raises(SigmaStateError, match="is not training"):
        connect(tmp_path)


def test_control_that_is_a_pipe_is_not_waited_for(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "control.json")
    with pytest.raises(SigmaStateError, match="is not training"):
        connect(tmp_path)


def test_control_cannot_name_a_socket_outside_a_directory_of_ones_own(home: Path, tmp_path: Path) -> None:
    folder = home.parent / "open"
    folder.mkdir(0o755)
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(str(folder / "trap.sock"))
        trap.listen()
        trap.setblocking(False)
        (tmp_path / "control.json").write_text(json.dumps({"socket": str(folder / "trap.sock")}))
        with pytest.raises(SigmaStateError, match="is not training"):
            connect(tmp_path)
        with pytest.raises(BlockingIOError):
            trap.accept()


# -- choosing a run ----------------------------------------------------------------------------------------------------
def test_without_a_run_the_remedy_is_named(home: Path) -> None:
    with pytest.raises(SigmaStateError, match="no run can be steered. Start one with `sigma run`"):
        connect()
    with pytest.raises(SigmaStateError, match="--run mine: no run of that name can be steered. Start one"):
        connect("mine")


def test_the_only_run_needs_no_name(serve: Any) -> None:
    serve()
    with connect() as run:
        assert run.about["name"] == "fake"
        assert repr(run) == f"Client('fake', process {os.getpid()})"


def test_one_of_several_runs_is_chosen_by_name_or_folder(serve: Any, tmp_path: Path) -> None:
    for name in ("one", "two", "two-b"):
        (tmp_path / f"{name}-1").mkdir()
        serve(FakeView(name=name.partition("-")[0], folder=tmp_path / f"{name}-1"))
    serve(FakeView(name="three"))
    for named, name in (("one", "one"), (str(tmp_path / "one-1"), "one"), ("two-b-1", "two"), ("three", "three")):
        with connect(named) as run:
            assert run.about["name"] == name
    with pytest.raises(SigmaConfigError) as refused:
        connect()
    listed = ["  one-1", "  two-1", "  two-b-1", f"  three (process {os.getpid()})"]
    assert str(refused.value).splitlines() == ["several runs can be steered. Name one with --run:", *listed]
    with pytest.raises(SigmaConfigError, match="two-1\n  two-b-1$"):
        connect("two")
    with pytest.raises(SigmaStateError, match="--run four: no run of that name can be steered. There is: one-1, two-1"):
        connect("four")


def test_a_run_is_found_by_its_folder_without_control(serve: Any, tmp_path: Path) -> None:
    serve(FakeView(name="mine", folder=tmp_path))
    (tmp_path / "control.json").unlink()
    with connect(tmp_path) as run:
        assert run.about["name"] == "mine"


def test_control_that_names_a_run_without_a_folder_is_refused(serve: Any, home: Path, tmp_path: Path) -> None:
    serve(FakeView(name="a"))
    (path,) = places.sockets()
    (tmp_path / "control.json").write_text(json.dumps({"socket": str(path)}))
    with pytest.raises(SigmaStateError, match="names the socket of another run. Remove that file"):
        connect(tmp_path)


def test_control_that_was_copied_names_the_folder_of_the_run(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    serve(FakeView(name="a", folder=tmp_path / "a"))
    (tmp_path / "b" / "control.json").write_text((tmp_path / "a" / "control.json").read_text())
    with pytest.raises(SigmaStateError, match=f"b: was moved or copied from {tmp_path / 'a'} while its run trains"):
        connect(tmp_path / "b")


@pytest.mark.parametrize("restored", [False, True])  # a run restores its folder with the next row that it writes
def test_a_run_whose_folder_was_moved_is_named_by_the_place_to_which_it_writes(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored: bool
) -> None:
    run, moved = tmp_path / "runs" / "mine-1", tmp_path / "runs" / "moved"
    run.mkdir(parents=True)
    serve(FakeView(name="mine", folder=run))
    run.rename(moved)
    if restored:
        run.mkdir()
    with pytest.raises(SigmaStateError) as refused:
        connect(moved)
    assert str(refused.value) == (
        f"{moved}: was moved or copied from {run} while its run trains, which still writes there. "
        f"Pass --run {run}, and move the folder once the run has ended."
    )
    monkeypatch.chdir(tmp_path)
    for named in (run, str(run), "runs/mine-1", "runs/../runs/mine-1/", "mine-1", "mine"):
        with connect(named) as client:
            assert client.about["name"] == "mine"


def test_a_run_that_does_not_answer_is_listed_as_such(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_monitor_control.discovery.PATIENCE", 0.05)
    listener, path = places.open_listener()
    (found,) = running()
    assert (found.client, found.title) == (None, f"process {os.getpid()} (no answer)")
    with pytest.raises(SigmaStateError, match="does not answer. Is it stopped, or busy?"):
        connect()
    listener.close()
    assert path.exists()


def test_a_socket_is_found_only_once_it_listens(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[Path]] = []

    class Slow(socket.socket):
        def listen(self, *backlog: int) -> None:
            seen.append([*places.sockets()])
            super().listen(*backlog)

    monkeypatch.setattr(socket, "socket", Slow)
    listener, path = places.open_listener()
    with listener:
        assert seen == [[]]  # who connects now would be refused, and take it for a dead one
        assert [*places.sockets()] == [path]
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        assert path.stat().st_mode & 0o777 == 0o600
    places.remove_file(path)
