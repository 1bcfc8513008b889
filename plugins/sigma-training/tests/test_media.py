"""Media of hooks: published like numbers, untouched by replays, continued by a resume, and kept within a budget."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.clock import every
from sigma_kernel.contracts import Hook, HookContext, Media, MediaEntry, PictureValue, StoredRun, TextValue
from sigma_kernel.contracts.media import describe_media
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaStateError, SigmaTrainingError
from sigma_store import FolderStore
from sigma_testing.doing import Do
from sigma_testing.journals import read_journal
from sigma_testing.steering import Sweep, crash, decisive, small_environment, steered_environment, train_until_crash
from sigma_training.history import media
from sigma_training.history.media import Gallery, MediaMemory, MediaRecorder, select_surplus

STEP = every(1, "iteration")


def text_of(context: HookContext) -> TextValue:
    """Return a text that tells the iteration, and the parameters by their bits."""
    weights = context.read("network.layers.weights")
    return TextValue(f"{context.moment.iteration} {np.asarray(weights).tobytes().hex()}", caption="weights")


def show(make: Callable[[HookContext], Media] = text_of, **settings: Any) -> Hook:
    chosen = {"every": STEP, "writes": ["shown"], "reads": ["network.layers.weights"], **settings}
    return Do(does=lambda context: context.publish("shown", make(context)), **chosen)


def open_run(folder: Path | None) -> StoredRun:
    assert folder is not None
    return FolderStore().open(folder, pytest.fail, lambda stored: None)


def places(entries: list[MediaEntry]) -> list[tuple[int, int]]:
    return [(entry.branch, entry.iteration) for entry in entries]


def said(sigma: Environment) -> list[str]:
    return [text for _, text in sigma.messages.entries_after(0)]


def small(hooks: dict[str, Hook], folder: Path | None = None, **settings: Any) -> Environment:
    sigma = small_environment(Sweep(), hooks=hooks, **settings)
    sigma.folder = folder
    return sigma


# -- publishing --------------------------------------------------------------------------------------------------------
def test_a_value_is_in_the_run_with_its_moment_and_in_no_registry_state_or_journal(tmp_path: Path) -> None:
    with small({"show": show(every=every(1, "epoch"))}, tmp_path) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=2)
        run = open_run(sigma.run_folder)
        (first, second) = run.media("trainer", "shown")
        assert (first.iteration, first.epoch, second.iteration, second.epoch) == (5, 1, 10, 2)
        assert (first.kind, first.caption, first.branch, first.is_left) == ("text", "weights", 0, False)
        assert 0 < first.seconds < second.seconds
        assert run.medium(first).encode().startswith(b"5 ")
        assert "shown" not in trainer.session.state.published
        with pytest.raises(SigmaAddressError):
            sigma.get("trainer.shown")
        assert trainer.view.media() == [first, second]
        assert trainer.view.read_media(first.key) == run.medium(first).encode()
        assert "shown" not in Path(str(sigma.run_folder), "journal.jsonl").read_text()


def test_media_may_have_the_address_of_a_number(tmp_path: Path) -> None:
    def both(context: HookContext) -> None:
        context.publish("shown", 2.5)
        context.publish("shown", TextValue("a"))

    with small({"both": Do(does=both, writes=["shown"])}, tmp_path) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.get("trainer.shown") == 2.5
        assert len(open_run(sigma.run_folder).media()) == 1


def test_media_are_declared_like_other_values() -> None:
    refused = pytest.raises(SigmaTrainingError, match="publishes 'shown' without declaring it")
    with small({"show": show(writes=["other"])}) as sigma, refused:
        sigma.trainer("trainer").fit(epochs=1)


def test_without_a_run_folder_media_are_in_memory(tmp_path: Path) -> None:
    with small({"show": show(every=every(1, "epoch"))}) as sigma:
        history = sigma.trainer("trainer").fit(epochs=2)
        assert [value.encode().split()[0] for value in history.media("shown")] == [b"5", b"10"]
        assert sigma.trainer("trainer").view.media_version() == 2


@pytest.mark.parametrize("place", ["background", "local"])
def test_hooks_elsewhere_publish_media_as_well(tmp_path: Path, place: str) -> None:
    how: dict[str, Any] = {"background": True} if place == "background" else {"scope": "local"}
    settled = Do(does=lambda c: sigma.trainer("trainer").session.background.finish(), every=STEP, priority=-9)
    with small({"show": show(**how), "settled": settled}, tmp_path) as sigma:
        sigma.trainer("trainer").fit(iterations=4)
        run = open_run(sigma.run_folder)
        name = "shown" if place == "background" else "workers.0.shown"
        assert len(entries := run.media("trainer", name)) == 4
        assert [run.medium(entry).encode().split()[0] for entry in entries] == [b"1", b"2", b"3", b"4"]


def test_a_value_that_is_too_large_is_left_out_with_a_word_and_training_goes_on(tmp_path: Path) -> None:
    with small({"show": show(lambda context: TextValue("x" * 3_000_000))}, tmp_path) as sigma:
        sigma.trainer("trainer").fit(iterations=1)
        assert open_run(sigma.run_folder).media() == []
        assert any("hook 'show': shown: a text of 3,000,000 bytes is left out." in text for text in said(sigma))


@pytest.mark.parametrize("background", [False, True])
def test_a_full_disk_is_said_once_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    from sigma_store.run_folder import FolderRun

    write, full = FolderRun.write, [2, 3, 4]

    def refuse(self: Any, name: str, data: bytes | str, durable: bool = True) -> Path:
        if name.startswith("media/") and str(data).partition(" ")[0].strip("b'") in map(str, full):
            raise SigmaStateError("media: cannot be written: No space left on device. Free disk space.")
        return write(self, name, data, durable)

    monkeypatch.setattr(FolderRun, "write", refuse)
    there = list[Environment]()
    wait = Do(does=lambda _: there[0].trainer("trainer").session.background.finish(), every=STEP, priority=-9)
    with small({"show": show(background=background), "wait": wait}, tmp_path) as sigma:
        there.append(sigma)
        sigma.trainer("trainer").fit(iterations=6)
        run = open_run(sigma.run_folder)
        assert places(run.media()) == [(0, 1), (0, 5), (0, 6)]
        assert [run.medium(entry).encode()[:1] for entry in run.media()] == [b"1", b"5", b"6"]
        assert (
            sum("ALARM: media of trainer are left out: media: cannot be written" in text for text in said(sigma)) == 1
        )


# -- bits --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("background", [False, True])
def test_media_change_no_bit_and_a_replay_finds_no_difference(tmp_path: Path, background: bool) -> None:
    with small({"show": show(background=background)}, tmp_path) as sigma, small({}) as plain:
        for each in (sigma, plain):
            each.trainer("trainer").fit(iterations=7)
        run, with_media = sigma.run_folder, sigma.trainer("trainer")
        assert run is not None
        states = [decisive(each)[0] for each in (with_media, plain.trainer("trainer"))]
        assert states[0] == states[1]
        listed = (run / "media.jsonl").read_bytes()
    with small({"show": show(background=background)}) as again:
        assert again.replay(run)[1] == {}
        for value in again.trainer("trainer").history.media():
            assert value.encode()  # or it is not listed
    assert (run / "media.jsonl").read_bytes() == listed, "a replay writes nothing."


@pytest.mark.parametrize("background", [False, True])
def test_a_resume_after_a_kill_continues_media_without_a_double_or_a_gap(tmp_path: Path, background: bool) -> None:
    def wait(context: HookContext) -> None:
        there[-1].trainer("trainer").session.background.finish()

    there = list[Environment]()
    hooks: dict[str, Hook] = {"show": show(background=background), "wait": Do(does=wait, every=STEP, priority=-9)}
    script = {4: lambda s: s.send("save"), 9: crash}
    with steered_environment(script, hooks=hooks) as sigma:
        there.append(sigma)
        run = train_until_crash(sigma, tmp_path)
    before = {entry.iteration: entry for entry in open_run(run).media()}
    assert {*before} >= {1, 2, 3, 4, 5, 6, 7, 8}
    with steered_environment(hooks=hooks) as again:
        there.append(again)
        again.resume(run)
        again.run()
    entries = open_run(run).media()
    assert places(entries) == [(0, n) for n in range(1, 13)]
    assert [entry.key for entry in entries if entry.iteration in before] == [one.key for one in before.values()]
    assert [open_run(run).medium(entry).encode().split()[0] for entry in entries] == [b"%d" % n for n in range(1, 13)]


def test_a_rewind_begins_another_branch_and_what_was_left_stays(tmp_path: Path) -> None:
    script = {8: lambda s: (s.set("trainer.optimiser.learning_rate", 0.3), s.rewind(5))}
    with steered_environment(script, last=9, hooks={"show": show()}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = open_run(sigma.run_folder)
    entries = run.media()
    assert places(entries) == [*((0, n) for n in range(1, 9)), *((1, n) for n in range(6, 10))]
    assert [entry.iteration for entry in entries if entry.is_left] == [6, 7, 8]


# -- the budget --------------------------------------------------------------------------------------------------------
def noise(context: HookContext) -> PictureValue:
    draw = np.random.default_rng(context.moment.iteration)
    return PictureValue(draw.integers(0, 256, (100, 300, 3), np.uint8), caption=str(context.moment.iteration))


def test_within_a_budget_of_bytes_older_media_go_ever_further_apart_and_it_is_said(tmp_path: Path) -> None:
    with small({"show": show(noise)}, tmp_path, media_bytes=1_000_000) as sigma:
        sigma.trainer("trainer").fit(iterations=60)
        run, folder = open_run(sigma.run_folder), Path(str(sigma.run_folder)) / "media"
        assert sum("media have more than media_bytes = 1,000,000" in text for text in said(sigma)) == 1
    kept = [entry.iteration for entry in run.media()]
    assert kept[0] == 1
    assert kept[-1] == 60
    assert 5 <= len(kept) <= 11
    gaps = np.diff(kept)
    assert gaps[-1] <= 4 < gaps.max()
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert files.keys() == {entry.key for entry in run.media()}, "files of removed media stay, or of others are gone."
    assert sum(files.values()) <= 1_000_000
    assert all(run.medium(entry).caption == str(entry.iteration) for entry in run.media())


def test_a_resume_keeps_to_the_budget(tmp_path: Path) -> None:
    with small({"show": show(noise)}, tmp_path, media_bytes=1_000_000) as sigma:
        sigma.trainer("trainer").fit(iterations=10)
        run = sigma.run_folder
    assert run is not None
    with small({"show": show(noise)}, media_bytes=1_000_000) as again:
        again.resume(run)
        again.trainer("trainer").fit(iterations=10)
    assert sum(entry.size for entry in open_run(run).media()) <= 1_000_000
    assert open_run(run).media()[-1].iteration == 20


def test_a_picture_that_is_shown_again_is_one_file_which_stays_as_long_as_one_moment_of_it(tmp_path: Path) -> None:
    def alternate(context: HookContext) -> PictureValue:
        return noise(context) if context.moment.iteration % 2 else PictureValue(np.zeros((2, 2), np.uint8))

    with small({"show": show(alternate)}, tmp_path, media_bytes=1_000_000) as sigma:
        sigma.trainer("trainer").fit(iterations=40)
        run = open_run(sigma.run_folder)
    black = [entry for entry in run.media() if entry.size < 1000]
    assert len({entry.key for entry in black}) == 1 < len(black)
    assert [run.medium(entry).facts() for entry in black] == [{"width": 2, "height": 2}] * len(black)


def publish(recorder: MediaRecorder, iteration: int, text: str, name: str = "shown") -> str:
    """Publish a text at an iteration; return the key of its bytes."""
    about, data = describe_media(name, TextValue(text))
    head = {"trainer": recorder.trainer, "iteration": iteration, "epoch": 0, "seconds": 0.0, "branch": 0}
    recorder.keep({**head, "session": 0, "start": 0}, name, about, data)
    return str(about["key"])


def test_the_list_is_not_read_again_where_media_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = FolderStore().create(
        tmp_path, "r", pytest.fail, lambda stored: "format = 1\n", lambda stored: None, exact=True
    )
    read = list[Path]()
    monkeypatch.setattr("sigma_store.run_folder.read_media", lambda path, log: read.append(path) or iter(()))
    recorder = MediaRecorder("trainer", most=10 * media.LEAST)
    recorder.open(run)
    opened = len(read)
    for iteration in range(200):
        publish(recorder, iteration, str(iteration))
    run.release()
    assert recorder._thinned > 100
    assert len(read) == opened
    kept = {f"{entry.key}" for entry in recorder._entries.values()}
    assert {path.name for path in (Path(run.place) / "media").iterdir()} == kept


def test_bytes_stay_as_long_as_any_trainer_lists_them(tmp_path: Path) -> None:
    run = FolderStore().create(
        tmp_path, "r", pytest.fail, lambda stored: "format = 1\n", lambda stored: None, exact=True
    )
    first, second = (MediaRecorder(name, lambda text: None, 2 * media.LEAST) for name in ("first", "second"))
    first.open(run)
    second.open(run)
    key = publish(second, 0, "of both")
    assert publish(first, 0, "of both") == key
    for iteration in range(1, 9):
        publish(first, iteration, "of the first", f"other {iteration}")
    assert (0, 0) not in places([*first._entries.values()])
    assert first.read(key) is not None, "the second lists it"
    for iteration in range(1, 9):
        publish(second, iteration, "of the second", f"other {iteration}")
    assert first.read(key) is None


def test_without_a_budget_nothing_is_kept(tmp_path: Path) -> None:
    with small({"show": show()}, tmp_path, media_bytes=0) as sigma:
        history = sigma.trainer("trainer").fit(iterations=3)
        assert not (Path(str(sigma.run_folder)) / "media").exists()
        assert len(history.media()) == 0


@pytest.mark.parametrize("size", [-1, 0.5, "1"])
def test_a_budget_that_is_no_number_of_bytes_is_refused(size: Any) -> None:
    with (
        small({}, media_bytes=size) as sigma,
        pytest.raises(SigmaConfigError, match="media_bytes: must be a whole numb"),
    ):
        sigma.prepare()


def entries_of(name: str, count: int, size: int) -> list[MediaEntry]:
    return [MediaEntry("trainer", name, n, 0, 0.0, 0, "text", f"{name}{n}", size) for n in range(count)]


def test_the_name_with_most_bytes_gives_way_first() -> None:
    large, small_ones = entries_of("large", 20, 200_000), entries_of("small", 20, 10)
    gone = select_surplus([*large, *small_ones], 20 * 65536 + 2_000_000)
    assert {entry.name for entry in gone} == {"large"}
    assert 0 not in {entry.iteration for entry in gone}
    assert 19 not in {entry.iteration for entry in gone}
    assert select_surplus([*large, *small_ones], 10**9) == []


def test_a_name_has_no_more_than_so_many_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MOST_MOMENTS", 10)
    gone = select_surplus([*entries_of("a", 11, 1), *entries_of("b", 10, 1)], 10**9)
    assert {entry.name for entry in gone} == {"a"}
    assert 11 - len(gone) == 8


def test_names_go_where_one_moment_of_each_is_too_much() -> None:
    entries = [MediaEntry("trainer", f"row {n}", n, 0, 0.0, 0, "text", f"key{n}", 1) for n in range(40)]
    gone = select_surplus(entries, 20 * 65536)
    assert gone == entries[:25]  # down to three quarters, so that not every further value makes room anew
    assert select_surplus(entries[:1], 0) == []


def test_rows_in_memory_are_those_of_what_is_there() -> None:
    shelf = MediaMemory()
    recorder = MediaRecorder("trainer", most=10 * 65536, shelf=shelf)
    for n in range(100):
        moment = {
            "trainer": "trainer",
            "iteration": n,
            "epoch": 0,
            "seconds": 0.0,
            "branch": 0,
            "session": 0,
            "start": 0,
        }
        about = {"kind": "text", "key": f"key{n}", "size": 1, "caption": "", "facts": {}}
        versions = recorder.version()
        recorder.keep(moment, f"name {n % 30}", about, b"x")
        assert recorder.version() != versions
    assert len(shelf.rows) == len(shelf.files) == len(recorder.entries()) <= 10
    assert recorder.entries()[-1].iteration == 99


# -- in notebooks ------------------------------------------------------------------------------------------------------
def test_a_gallery_shows_rows_of_values_by_name_evenly_chosen() -> None:
    def draw(context: HookContext) -> None:
        context.publish("drawn", noise(context))

    with small({"show": show(), "other": Do(does=draw, writes=["drawn"], every=every(2, "epoch"))}) as sigma:
        history = sigma.trainer("trainer").fit(epochs=6)
    html = history.media()._repr_html_()
    assert html.count("<figure") == 12 + 3
    assert "<h4>shown, 12 of 30</h4>" in html
    assert "epoch 6, iteration 30" in html
    assert "epoch 0, iteration 1: weights" in html
    assert repr(history.media()) == "Gallery(shown (30), drawn (3))"
    assert [type(value) for value in history.media("drawn")[1:]] == [PictureValue, PictureValue]
    with pytest.raises(SigmaAddressError, match="media: none has the name 'show'. Did you mean 'shown'"):
        history.media("show")
    assert Gallery()._repr_html_() == ""


def test_a_folder_of_a_run_that_is_gone_leaves_a_gallery_without_values(tmp_path: Path) -> None:
    with small({"show": show(every=every(1, "epoch"))}, tmp_path) as sigma:
        history = sigma.trainer("trainer").fit(epochs=1)
        gallery = history.media()
        shutil.rmtree(Path(str(sigma.run_folder)) / "media")
        with pytest.raises(Exception, match=r"media/.*\.txt: is missing"):
            gallery[0]
    assert read_journal(Path(str(sigma.run_folder)))
