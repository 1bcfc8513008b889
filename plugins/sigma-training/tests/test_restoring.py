"""Restoring checkpoints of a run folder: the newest that fits a session, which is unchanged if none does."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

import sigma_kernel
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError
from sigma_store.checkpoints import store as checkpoint
from sigma_store.run_folder import FolderRun, FolderStore
from sigma_testing.steering import Sweep, small_environment, state_bytes
from sigma_training.compatibility import differences, made_with
from sigma_training.runs.resume import restore

KEYS = ("clock", "cursor", "live", "hooks", "streams", "published")  # of the values of a state tree


def stored(run: Path) -> FolderRun:
    return FolderStore().open(run, pytest.fail, lambda run: None)


@pytest.fixture
def trained(deep: Callable[..., Environment], tmp_path: Path) -> Environment:
    """Return an environment after two epochs, with a checkpoint after each."""
    sigma = deep()
    trainer = sigma.trainer("trainer")
    for number in (1, 2):
        trainer.fit(epochs=1)
        checkpoint.write(tmp_path / "checkpoints" / "trainer" / str(number), trainer.session.snapshot())
    return sigma


def prepared(deep: Callable[..., Environment]) -> Any:
    sigma = deep()
    sigma.prepare()
    return sigma.trainer("trainer")


def test_the_newest_checkpoint_is_restored(
    trained: Environment, deep: Callable[..., Environment], tmp_path: Path
) -> None:
    fresh = prepared(deep)
    assert restore(stored(tmp_path), fresh.session, pytest.fail)[0] == "2"
    assert state_bytes(fresh) == state_bytes(trained.trainer("trainer"))
    found, saved = (trainer.session.snapshot().values for trainer in (fresh, trained.trainer("trainer")))
    assert [found[name] for name in KEYS] == [saved[name] for name in KEYS]


def misfit(name: str, there: Checkpoint) -> Checkpoint:
    """Return a valid checkpoint that no session can resume from."""
    arrays, first = dict(there.arrays), min(there.arrays)
    match name:
        case "shape":
            arrays[first] = np.zeros((77, 3), arrays[first].dtype)
        case "type":
            arrays[first] = arrays[first].astype(np.int8)
        case "missing":
            del arrays[first]
        case "more":
            arrays["optimiser.slots.more"] = np.zeros(1)
        case "kept":
            arrays[f"kept.early.{first}"] = np.zeros((1, 2, 3))
        case "another":
            return evolve(there, values={**there.values, "trainer": "critic"})
        case "values":
            return evolve(there, values={"cursor": "noon"})
    return evolve(there, arrays=arrays)


@pytest.mark.parametrize("wrong", ["shape", "type", "missing", "more", "kept", "another", "values"])
def test_a_checkpoint_that_does_not_fit_is_named_and_the_previous_one_is_used(
    trained: Environment, deep: Callable[..., Environment], tmp_path: Path, wrong: str
) -> None:
    newest = checkpoint.list_checkpoints(tmp_path, "trainer")[-1]
    checkpoint.write(newest, misfit(wrong, checkpoint.read(newest)))
    fresh, said = prepared(deep), []
    assert restore(stored(tmp_path), fresh.session, said.append)[0] == "1"
    assert [text.startswith(f"{newest}: ") for text in said] == [True]
    before = checkpoint.read(newest.with_name("1"))
    assert state_bytes(fresh) == {name: value.tobytes() for name, value in before.arrays.items()}


def test_the_session_is_unchanged_if_no_checkpoint_fits(
    trained: Environment, deep: Callable[..., Environment], tmp_path: Path
) -> None:
    for path in checkpoint.list_checkpoints(tmp_path, "trainer"):
        checkpoint.write(path, misfit("values", checkpoint.read(path)))
    fresh = prepared(deep)
    before = fresh.session.snapshot()
    with pytest.raises(SigmaCheckpointError, match="none|no intact checkpoint"):
        restore(stored(tmp_path), fresh.session, lambda _: None)
    assert state_bytes(fresh) == {name: value.tobytes() for name, value in before.arrays.items()}
    assert fresh.session.snapshot().values == before.values


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100)
@given(values=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), json_values, max_size=4))
def test_any_values_are_accepted_or_refused(fuzzed: tuple[Path, Checkpoint, Any], values: dict[str, Any]) -> None:
    run, good, trainer = fuzzed
    checkpoint.write(run / "checkpoints" / "trainer" / "2", evolve(good, values={**good.values, **values}))
    said: list[str] = []
    assert restore(stored(run), trainer.session, said.append)[0] == ("1" if said else "2")


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Checkpoint, Any]:
    """Return a run folder with one valid checkpoint, that checkpoint, and a trainer to restore others to."""
    run, sigma = tmp_path_factory.mktemp("fuzzed"), small_environment(Sweep())
    trainer = sigma.trainer("trainer")
    trainer.fit(epochs=1)
    good = trainer.session.snapshot()
    checkpoint.write(run / "checkpoints" / "trainer" / "1", good)
    return run, good, trainer


# -- recorded versions -------------------------------------------------------------------------------------------------
def test_a_checkpoint_records_the_versions_that_wrote_it(tmp_path: Path) -> None:
    made = made_with("numpy", {"BLAS": "openblas 0.3"})
    assert made["BLAS"] == "openblas 0.3"
    assert made["sigma-kernel"] == sigma_kernel.__version__
    assert (made["python"], made["numpy"]) == (platform.python_version(), np.__version__)
    assert made["processor"].startswith(platform.machine())
    assert made["backend"] == "numpy"
    checkpoint.write(tmp_path / "1", Checkpoint({"x": np.full(3, 1)}, {"number": 1}, made_with=made))
    assert checkpoint.read(tmp_path / "1").made_with == json.loads(json.dumps(made))


def test_differences_from_the_recorded_versions_are_reported() -> None:
    then = {"python": "3.11.7", "numpy": "2.1.0", "gone": "1"}
    now = {"python": "3.11.7", "numpy": "2.4.6", "new": "1"}
    assert differences(then, now) == ["numpy was 2.1.0, and is 2.4.6 now"]
