"""Checkpoints are complete and verified, or refused."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaCheckpointError
from sigma_store.checkpoints import format as form, store as checkpoint
from sigma_store.checkpoints.store import ARRAYS, MANIFEST, SEAL
from sigma_store.files import digest
from sigma_testing.checkpoints import newest_checkpoint
from sigma_testing.steering import Sweep, small_environment
from sigma_training.runs.resume import fit

GOLDEN = Path(__file__).parent / "golden"
STATE = Checkpoint(
    {"network.layers.0.weights": np.arange(6, dtype=np.float32).reshape(2, 3), "optimiser.step": np.array(7, np.int32)},
    {"clock": {"iteration": 7, "epoch": 0}, "hooks": {"stop": {"best": float("inf")}}},
    {"backend": "numpy"},
    score=0.25,
)
MAKES_A_LINK = hasattr(os, "symlink") and sys.platform != "win32"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return checkpoint.write(tmp_path / "checkpoints" / "trainer" / "7", STATE)


@pytest.fixture
def before(saved: Path) -> Path:
    """Return a valid checkpoint that is older than the one to be damaged."""
    return checkpoint.write(saved.with_name("6"), STATE)


def same(found: Checkpoint, state: Checkpoint = STATE) -> bool:
    bits = [{n: (v.dtype, v.shape, v.tobytes()) for n, v in each.arrays.items()} for each in (found, state)]
    return bits[0] == bits[1] and evolve(found, arrays={}) == evolve(state, arrays={})


# -- round trip --------------------------------------------------------------------------------------------------------
def test_a_saved_checkpoint_round_trips_bit_for_bit(saved: Path) -> None:
    assert same(checkpoint.read(saved))


def test_a_checkpoint_consists_of_exactly_three_files(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted([ARRAYS, MANIFEST, SEAL])
    assert [path.name for path in saved.parent.iterdir()] == ["7"]


def test_checkpoint_files_have_the_same_permissions(saved: Path) -> None:
    assert (saved / ARRAYS).stat().st_mode == (saved / MANIFEST).stat().st_mode


def test_a_later_checkpoint_of_the_same_name_replaces_an_earlier_one(saved: Path) -> None:
    checkpoint.write(saved, Checkpoint({}, {"number": 8}))
    assert checkpoint.read(saved).values == {"number": 8}
    assert [path.name for path in saved.parent.iterdir()] == ["7"]


def test_a_link_in_place_of_a_checkpoint_is_neither_replaced_nor_removed(saved: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    saved.rename(outside)
    saved.symlink_to(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    with pytest.raises(SigmaCheckpointError, match="7: cannot be written: it is a link. Earlier"):
        checkpoint.write(saved, Checkpoint({}, {"number": 8}))
    with pytest.raises(OSError, match="it is a link"):
        checkpoint.remove(saved)
    assert saved.is_symlink()
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (Checkpoint({"a": np.array([object()])}, {}), "type object, which could not be read back"),
        (Checkpoint({"a": np.zeros(2, "datetime64[s]")}, {}), "could not be read back"),
        (Checkpoint({}, {"hooks": {"a": {1, 2}}}), "set: cannot be written as JSON"),
        (Checkpoint({}, {"trainer": "x" * (16 << 20)}), "16,777,216 are allowed"),
    ],
)
def test_values_that_could_not_be_restored_are_not_saved(saved: Path, state: Checkpoint, reason: str) -> None:
    with pytest.raises(SigmaCheckpointError, match=reason):
        checkpoint.write(saved, state)
    assert same(checkpoint.read(saved))
    assert [path.name for path in saved.parent.iterdir()] == ["7"]


def test_a_failed_write_leaves_the_old_checkpoint_and_no_partial_one(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_put", full)
    with pytest.raises(SigmaCheckpointError, match="No space left"):
        checkpoint.write(saved, Checkpoint({}, {}))
    assert same(checkpoint.read(saved))
    assert [path.name for path in saved.parent.iterdir()] == ["7"]


def test_a_failed_move_restores_the_old_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.suffix == ".part":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(SigmaCheckpointError, match="Input/output error"):
        checkpoint.write(saved, Checkpoint({}, {}))
    assert same(checkpoint.read(saved))
    assert [path.name for path in saved.parent.iterdir()] == ["7"]


# -- damage ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_every_flipped_bit_is_detected(saved: Path, name: str) -> None:
    good = (saved / name).read_bytes()
    places = range(len(good)) if len(good) < 200 else np.random.default_rng(0).integers(0, len(good), 200)
    for place in places:
        for bit in (0, 7):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            (saved / name).write_bytes(bad)
            with pytest.raises(SigmaCheckpointError, match=str(saved)):
                checkpoint.read(saved)
    (saved / name).write_bytes(good)
    checkpoint.read(saved)


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(SigmaCheckpointError, match=f"{name}: cannot be read: No such file"):
        checkpoint.read(saved)


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(saved: Path, before: Path, tmp_path: Path) -> None:
    (saved / ARRAYS).write_bytes(b"?")
    said: list[str] = []
    path, found = newest_checkpoint(tmp_path, log=said.append)
    assert path == before
    assert same(found)
    assert len(said) == 1
    assert f"{saved / ARRAYS}: is damaged" in said[0]


def test_a_checkpoint_that_the_caller_rejects_is_skipped(saved: Path, before: Path, tmp_path: Path) -> None:
    def use(label: str, found: Checkpoint) -> None:
        if label == saved.name:
            raise SigmaCheckpointError("does not fit")

    said: list[str] = []
    assert newest_checkpoint(tmp_path, "trainer", said.append, use)[0] == before
    assert said == ["does not fit"]


def test_each_damaged_checkpoint_is_named_if_none_is_complete(saved: Path, before: Path, tmp_path: Path) -> None:
    for path in (saved, before):
        (path / SEAL).unlink()
    said: list[str] = []
    with pytest.raises(SigmaCheckpointError, match=f"{saved.parent}: has no intact checkpoint"):
        newest_checkpoint(tmp_path, log=said.append)
    assert [str(path / SEAL) in text for path, text in zip((saved, before), said, strict=True)] == [True, True]


# -- listing -----------------------------------------------------------------------------------------------------------
def test_the_newest_checkpoint_has_the_highest_number(tmp_path: Path) -> None:
    for step in (9, 10, 100, 11):
        checkpoint.write(tmp_path / "checkpoints" / "trainer" / str(step), STATE)
    shutil.copytree(tmp_path / "checkpoints/trainer/100", tmp_path / "checkpoints/trainer/.101.1.part")
    for name in ("²", "0101", "102.branch-0"):  # a digit to some, a number to none
        (tmp_path / "checkpoints/trainer" / name).mkdir()
    assert newest_checkpoint(tmp_path)[0].name == "100"


def test_a_folder_without_checkpoints_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SigmaCheckpointError, match="holds no checkpoint. One is saved"):
        newest_checkpoint(tmp_path)


# -- what a crash leaves -----------------------------------------------------------------------------------------------
def test_a_checkpoint_set_aside_by_a_failed_write_is_put_back(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, saved.with_name(".7.part"))
    (saved.with_name(".7.part") / SEAL).unlink()
    saved.rename(saved.with_name(".7.old"))
    said: list[str] = []
    checkpoint.recover(tmp_path, said.append)
    assert [path.name for path in saved.parent.iterdir()] == ["7"]
    assert same(checkpoint.read(saved))
    assert said == [f"{saved}: restored: its successor was never finished."]


def test_superseded_and_unfinished_checkpoints_are_removed(saved: Path, tmp_path: Path) -> None:
    for name in (".7.old", ".8.part", f".{9**30}.part", ".something"):
        shutil.copytree(saved, saved.with_name(name))
    said: list[str] = []
    checkpoint.recover(tmp_path, said.append)
    assert {path.name for path in saved.parent.iterdir()} == {"7", ".something"}
    assert said == []


@pytest.mark.skipif(not MAKES_A_LINK, reason="symbolic links are not supported")
@pytest.mark.parametrize("depth", [1, 2])
def test_nothing_is_written_or_removed_through_a_link_in_place_of_the_folder_around_checkpoints(
    saved: Path, tmp_path: Path, depth: int
) -> None:
    """While a run writes, somebody may put a link to another folder there: retention removed that folder's entries."""
    outside = tmp_path / "outside"
    place = saved.parents[depth - 1]
    place.rename(outside)
    place.symlink_to(outside, target_is_directory=True)
    (saved.with_name(".7.part")).mkdir()
    before = sorted(str(path) for path in outside.rglob("*"))
    with pytest.raises(SigmaCheckpointError, match=f"7: cannot be written: .*{place.name} is a link. Earlier"):
        checkpoint.write(saved, Checkpoint({}, {}))
    with pytest.raises(OSError, match="is a link"):
        checkpoint.remove(saved)
    assert sorted(str(path) for path in outside.rglob("*")) == before


@pytest.mark.skipif(not MAKES_A_LINK, reason="symbolic links are not supported")
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_clean_up_does_not_follow_links(saved: Path, tmp_path: Path, depth: int) -> None:
    left_over = saved.rename(saved.with_name(".7.part"))
    run = tmp_path / "run"
    link = (run / "checkpoints/trainer/.7.part", run / "checkpoints/trainer", run / "checkpoints")[depth]
    link.parent.mkdir(parents=True)
    link.symlink_to((left_over, *left_over.parents)[depth], target_is_directory=True)
    checkpoint.recover(run)
    assert len(list(left_over.iterdir())) == 3


def test_clean_up_in_a_read_only_folder_is_reported(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise OSError(30, "Read-only file system")

    saved.rename(saved.with_name(".7.old"))
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(SigmaCheckpointError, match="Read-only file system. Make its checkpoints writable"):
        checkpoint.recover(tmp_path)


def test_a_folder_that_cannot_be_listed_is_named(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(
        SigmaCheckpointError, match=f"{saved.parent}: cannot be read: Permission denied. Make it readable"
    ):
        newest_checkpoint(tmp_path)


# -- limits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "rows", "lacks"),
    [
        ({}, 900, []),
        ({"undo": [{"a": "x" * 900}]}, 0, []),
        ({"hooks": {"mine": {"hook": {"seen": "x" * 900}}}, "changes": {"a": 1}, "undo": [{}]}, 900, ["hooks"]),
        ({"classes": ["x" * 900], "learned": {"a": "y"}, "changes": {"b": 2}}, 0, ["changes", "learned", "classes"]),
        ({"live": {f"rate.{n}": 0.5 for n in range(90)}}, 900, ["live"]),
    ],
)
def test_the_arrays_are_saved_whatever_else_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], rows: int, lacks: list[str]
) -> None:
    monkeypatch.setattr(checkpoint, "LARGEST", 900)
    chain = {"configuration": "0" * 64, "head": "1" * 16, "rows": ["x" * rows]}
    told: list[str] = []
    state = Checkpoint(STATE.arrays, {"clock": {"iteration": 7, "epoch": 0}, **values}, chain=chain)
    found = checkpoint.read(checkpoint.write(tmp_path / "7", state, told.append))
    assert {name: found.arrays[name].tobytes() for name in found.arrays} == {
        n: v.tobytes() for n, v in STATE.arrays.items()
    }
    assert found.values["clock"] == {"iteration": 7, "epoch": 0}
    assert found.chain["head"] == chain["head"]
    assert found.values.get("lacks", []) == lacks
    said = [f"ALARM: a checkpoint lacks {', '.join(lacks)}: too large. It can predict, but training cannot resume."]
    assert told == (said if lacks else [])


def test_training_does_not_go_on_from_a_checkpoint_that_lacks_what_was_too_large(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        session = sigma.trainer("trainer").session
        whole = session.snapshot()
        with pytest.raises(SigmaCheckpointError, match="lacks hooks, which were too large to save. It can predict; to"):
            fit(tmp_path, evolve(whole, values={**whole.values, "lacks": ["hooks"]}), session)


# -- formats -----------------------------------------------------------------------------------------------------------
def test_saved_checkpoints_have_the_format_of_the_newest_golden_file(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:  # a failure here: raise MINOR, and add a golden file
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.run_folder is not None
        newest = checkpoint.list_checkpoints(sigma.run_folder, "trainer")[-1]
    paths = newest, GOLDEN / f"{form.FORMAT}.{form.MINOR}"
    here, golden = (json.loads((path / MANIFEST).read_text()) for path in paths)
    assert [here["format"], here["minor"], set(here)] == [golden["format"], golden["minor"], set(golden)]
    assert set(here["values"]) == set(golden["values"])
    assert sorted(path.name for path in GOLDEN.glob("[0-9]*"))[-1] == paths[1].name


def test_a_run_continues_from_the_golden_file() -> None:
    golden = checkpoint.read(GOLDEN / f"{form.FORMAT}.{form.MINOR}", pytest.fail)
    with small_environment(Sweep(), splits=["training"]) as sigma:
        sigma.prepare()
        session = sigma.trainer("trainer").session
        fit(GOLDEN, golden, session)
        again = session.snapshot()
        counted = {"optimiser.slots.weights.updates": golden.arrays["optimiser.step"]}  # which older ones do not have
        assert same(again, Checkpoint({**golden.arrays, **counted}, again.values))
        apart = {"branch", "journal", "ranking", "learned", "sums"}  # of the run folder, of the data, and sums in parts
        assert again.values["sums"] == {n: [[one] for one in held] for n, held in golden.values["sums"].items()}
        assert all(again.values[name] == value for name, value in golden.values.items() if name not in apart)
        sigma.send("undo")
        assert sigma.get("trainer.optimiser.learning_rate") == 0.05
        sigma.trainer("trainer").fit(iterations=1)
        assert session.moment.iteration == 8


def test_a_newer_minor_format_is_read_with_a_warning(saved: Path) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    files = {**manifest["files"], "../../more": "0" * 64}
    reseal(saved, {**manifest, "minor": 9, "mood": ["good"], "files": files})
    said: list[str] = []
    assert same(checkpoint.read(saved, said.append))
    assert len(said) == 1
    assert "has format 2.9, newer than format 2.3" in said[0]
    with pytest.warns(UserWarning, match="Update sigma-kernel"):
        checkpoint.read(saved)


@pytest.mark.parametrize(("major", "remedy"), [(3, "Update sigma-kernel"), (1, "Use the sigma-kernel that wrote it")])
def test_another_major_format_is_refused_with_the_remedy(saved: Path, major: int, remedy: str) -> None:
    reseal(saved, {**json.loads((saved / MANIFEST).read_text()), "format": major})
    with pytest.raises(
        SigmaCheckpointError, match=f"has format {major}.3, and this version reads format 2.3. {remedy}"
    ):
        checkpoint.read(saved)


# -- foreign files -----------------------------------------------------------------------------------------------------
class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("it was executed",))


WHOLE: dict[str, Any] = {
    "format": 2, "minor": 0, "files": {}, "sizes": {}, "values": {}, "made_with": {}, "score": None, "keep": False,
    "chain": {},
}  # fmt: skip
WRONG: list[dict[str, Any]] = [
    {"files": 3}, {"values": []}, {"format": True}, {"format": "2"}, {"minor": -1}, {"minor": "1"}, {"score": 10**400},
    {"files": {ARRAYS: 3}, "sizes": {ARRAYS: 10**18}}, {"files": {"/etc/passwd": "0" * 64}}, {"keep": "yes"},
    {"files": {"../6/" + ARRAYS: "0" * 64}}, {"format": float("nan")}, {"minor": float("inf")}, {"chain": []},
    {"files": {ARRAYS: ["0" * 64]}, "sizes": {ARRAYS: float("nan")}}, {"made_with": None}, {"chain": {"head": 1}},
    {"files": {ARRAYS: "0" * 64}, "sizes": {ARRAYS: "0"}},
    *({"values": {n: v}} for n, v in {"batch_size": -1, "journal": 0.5, "branch": "x", "classes": None}.items()),
]  # fmt: skip


@pytest.mark.parametrize(
    "manifest",
    [
        [], {}, "x", None, 1, *({**WHOLE, **change} for change in WRONG),
        *({name: value for name, value in WHOLE.items() if name != missing} for missing in WHOLE),
    ],
)  # fmt: skip
def test_an_invalid_manifest_with_a_valid_checksum_is_refused(saved: Path, manifest: object) -> None:
    reseal(saved, manifest)
    with pytest.raises(
        SigmaCheckpointError, match=r"manifest\.json: (not a|is no|has format)|state\.safetensors: is damaged"
    ):
        checkpoint.read(saved)


@pytest.mark.parametrize(
    ("clock", "wrong"),
    [
        ({}, "clock.iteration, clock.epoch"), ({"iteration": 7}, "clock.epoch"),
        ({"iteration": "7", "epoch": 0}, "clock.iteration"), ({"iteration": 7, "epoch": -1}, "clock.epoch"),
    ],
)  # fmt: skip
def test_a_clock_without_its_counts_is_refused(saved: Path, clock: object, wrong: str) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    manifest["values"]["clock"] = clock
    reseal(saved, manifest)
    with pytest.raises(SigmaCheckpointError, match=rf"not a manifest: {wrong} wrong\. Use another"):
        checkpoint.read(saved)


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_a_pickle_in_place_of_a_file_is_never_executed(saved: Path, name: str) -> None:
    (saved / name).write_bytes(pickle.dumps(Bomb()))
    reseal_all(saved)
    with pytest.raises(SigmaCheckpointError, match=str(saved)):
        checkpoint.read(saved)


@pytest.mark.parametrize("deep", ["[" * 1_000_000, '{"a":' * 1_000_000, '{"format": 1, "values": ' + "[" * 1_000_000])
def test_a_manifest_with_too_deep_nesting_is_refused(saved: Path, deep: str) -> None:
    (saved / MANIFEST).write_text(deep)
    reseal_all(saved)
    with pytest.raises(SigmaCheckpointError, match="not JSON: RecursionError"):
        checkpoint.read(saved)


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_a_file_of_any_size_is_refused_before_memory_is_allocated(saved: Path, name: str) -> None:
    with (saved / name).open("r+b") as file:
        file.truncate(1 << 40)  # sparse: it takes no disk space
    tracemalloc.start()
    try:
        with pytest.raises(SigmaCheckpointError, match="it has 1,099,511,627,776 bytes"):
            checkpoint.read(saved)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
        {"dtype": "object", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [0] * 100_000, "data_offsets": [0, 0]},
    ],
)
def test_arrays_whose_header_declares_missing_data_are_refused(saved: Path, tensor: object) -> None:
    header = json.dumps({"a": tensor}).encode()
    (saved / ARRAYS).write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    reseal_all(saved)
    with pytest.raises(SigmaCheckpointError, match=f"{ARRAYS}: cannot be read"):
        checkpoint.read(saved)


@pytest.mark.skipif(not MAKES_A_LINK, reason="symbolic links are not supported")
@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_a_link_in_place_of_a_file_is_not_followed(saved: Path, before: Path, name: str) -> None:
    (saved / name).unlink()
    (saved / name).symlink_to(before / name)
    with pytest.raises(SigmaCheckpointError, match=f"{name}: not a regular file"):
        checkpoint.read(saved)


@pytest.mark.skipif(not MAKES_A_LINK, reason="symbolic links are not supported")
def test_a_link_in_place_of_a_checkpoint_is_not_followed(saved: Path, before: Path, tmp_path: Path) -> None:
    shutil.rmtree(saved)
    saved.symlink_to(before, target_is_directory=True)
    said: list[str] = []
    assert newest_checkpoint(tmp_path, log=said.append)[0] == before
    assert said == [f"{saved}: not a directory. Use another checkpoint."]


@pytest.mark.skipif(not MAKES_A_LINK, reason="symbolic links are not supported")
@pytest.mark.parametrize("name", ["checkpoints", "checkpoints/trainer"])
def test_a_link_above_a_checkpoint_is_not_followed(saved: Path, tmp_path: Path, name: str) -> None:
    link = tmp_path / "run" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / name, target_is_directory=True)
    with pytest.raises(SigmaCheckpointError, match="is a link, or inside one. Link to the whole run folder"):
        newest_checkpoint(tmp_path / "run")
    (tmp_path / "runs").symlink_to(tmp_path, target_is_directory=True)
    assert same(newest_checkpoint(tmp_path / "runs")[1])


def test_a_regular_file_in_place_of_a_checkpoint_is_reported(saved: Path, before: Path, tmp_path: Path) -> None:
    shutil.rmtree(saved)
    saved.write_bytes(pickle.dumps(Bomb()))
    said: list[str] = []
    assert newest_checkpoint(tmp_path, log=said.append)[0] == before
    assert said == [f"{saved}: not a directory. Use another checkpoint."]


def test_an_unreadable_file_is_named(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SigmaCheckpointError, match=f"{saved / MANIFEST}: cannot be read: Permission denied"):
        checkpoint.read(saved)


def test_an_array_declared_twice_is_refused_or_read(saved: Path) -> None:
    one = '"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}'
    header = f"{{{one}, {one}}}".encode()
    (saved / ARRAYS).write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    reseal_all(saved)
    refused_or_read(saved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are not supported")
@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(saved: Path, name: str) -> None:
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(SigmaCheckpointError, match=f"{name}: not a regular file"):
        checkpoint.read(saved)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a path for checkpoints that are repeatedly invalidated."""
    return tmp_path_factory.mktemp("fuzzed") / "7"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
offered = st.fixed_dictionaries(
    {},
    optional={
        name: json_values | likely
        for name, likely in {
            "format": st.just(1), "minor": st.integers(0, 2), "values": st.just({}), "sizes": st.just({}),
            "files": st.sampled_from([{}, {"/etc/passwd": "0" * 64}, {"../../x": ""}]), "made_with": st.just({}),
            "score": st.floats(), "keep": st.booleans(), "more": st.none(),
        }.items()
    },
)  # fmt: skip


def refused_or_read(folder: Path) -> None:
    """Read an arbitrary checkpoint: it is read, or refused with the right error, without side effects."""
    said = str(folder)
    try:
        checkpoint.read(folder, lambda _: None)
    except SigmaCheckpointError as error:
        said = str(error)
    assert str(folder) in said


@settings(max_examples=100)
@given(name=st.sampled_from([ARRAYS, MANIFEST, SEAL]), data=st.binary(max_size=300), sealed=st.booleans())
def test_any_bytes_in_place_of_a_file_are_refused_or_read(target: Path, name: str, data: bytes, sealed: bool) -> None:
    checkpoint.write(target, STATE)
    (target / name).write_bytes(data)
    if sealed:
        reseal_all(target)
    refused_or_read(target)


@settings(max_examples=100)
@given(manifest=offered | json_values)
def test_any_manifest_with_a_valid_checksum_is_refused_or_read(target: Path, manifest: object) -> None:
    checkpoint.write(target, STATE)
    reseal(target, manifest)
    refused_or_read(target)


@settings(max_examples=100)
@given(
    header=st.dictionaries(
        st.text(max_size=5),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F32", "U8", "BOOL", "F8_E4M3", "BF16", "x"]),
                "shape": st.lists(st.integers(-1, 2**64), max_size=3),
                "data_offsets": st.lists(st.integers(0, 40) | st.integers(), min_size=2, max_size=2),
            }
        )
        | json_values,
        max_size=3,
    ),
    length=st.none() | st.integers(0, 2**64 - 1),
    data=st.binary(max_size=40),
)
def test_any_arrays_with_a_valid_checksum_are_refused_or_read(
    target: Path, header: object, length: int | None, data: bytes
) -> None:
    checkpoint.write(target, STATE)
    text = json.dumps(header).encode()
    (target / ARRAYS).write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    reseal_all(target)
    refused_or_read(target)


def reseal(folder: Path, manifest: object) -> None:
    """Write a manifest with a valid checksum."""
    text = json.dumps(manifest).encode()
    (folder / MANIFEST).write_bytes(text)
    (folder / SEAL).write_bytes(checkpoint.seal(text))


def reseal_all(folder: Path) -> None:
    """Recompute all checksums, as far as possible."""
    seal, text, data = ((folder / name).read_bytes() for name in (SEAL, MANIFEST, ARRAYS))
    try:
        manifest = json.loads(text)
        manifest |= {"files": {ARRAYS: digest(data)}, "sizes": {ARRAYS: len(data)}}
        text = json.dumps(manifest).encode()
    except (ValueError, TypeError, RecursionError):
        pass  # not a manifest: only its own checksum can be fixed
    (folder / MANIFEST).write_bytes(text)
    (folder / SEAL).write_bytes(checkpoint.seal(text) if len(seal) == len(checkpoint.seal(b"")) else seal)
