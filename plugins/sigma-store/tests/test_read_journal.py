"""The rows of a journal, read to be shown or by the plugin that wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.clock import every
from sigma_kernel.errors import SigmaConfigError
from sigma_store import read_journal
from sigma_testing import Do, Sweep, small_environment


def stored_run(folder: Path) -> Path:
    """Train for two epochs with a background hook, and send a command as a person."""
    said = Do(
        does=lambda context: context.publish("said", context.moment.epoch),
        writes=["said"], background=True, every=every(1, "epoch"),
    )  # fmt: skip
    slower = Do(does=lambda context: context.command("set", pattern="optimiser.learning_rate", value=0.5))
    with small_environment(Sweep(), hooks={"said": said, "slower": slower}) as sigma:
        sigma.folder = folder
        sigma.trainer("trainer").fit(epochs=2)
        sigma.send("set", pattern="trainer.optimiser.learning_rate", value=0.25, who="ada")
        run = sigma.run_folder
    assert run is not None
    return run


def test_rows_are_found_by_the_values_of_their_fields(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    assert [row["value"] for row in read_journal(run, command="set")] == [0.5, 0.5, 0.25]
    assert [row["who"] for row in read_journal(run, command="set", value=0.25)] == ["ada"]
    assert [row["epoch"] for row in read_journal(str(run), command="set", by="slower")] == [1, 2]
    published: list[Any] = [row["published"] for row in read_journal(run, event="background", hook="said")]
    assert published == [{"said": 1}, {"said": 2}]
    assert read_journal(run, command="nothing") == []


def test_all_rows_are_read_without_digests_and_hashes(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    whole = (run / "journal.jsonl").read_text()
    rows = read_journal(run)
    assert '"event": "digest"' in whole
    assert rows[0]["event"] == "begin"
    assert not [row for row in rows if "hash" in row or row.get("event") == "digest"]
    with (run / "journal.jsonl").open("a") as file:
        file.write('{"trainer": "tra')  # a line that is being written
    assert read_journal(run) == rows


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SigmaConfigError, match=r"journal.jsonl: there is no journal. Pass the folder of a run."):
        read_journal(tmp_path)
