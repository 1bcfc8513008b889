"""Training in a job of MPI, against the bits of `local`: undisturbed, and with a rank that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

from sigma_run import config
from sigma_testing.transports.driving import wait_until_ended

HERE = Path(__file__).parent


def train_locally(jobs: Any) -> str | None:
    """Return the hash of the parameters of ``run.toml``, without workers."""
    text = re.sub(
        "^operator = .*$",
        'operator = { type = "local", shards = 12 }',
        (jobs.folder / "run.toml").read_text(),
        flags=re.M,
    )
    with config.build(config.load(text)) as environment:
        return environment.run(progress=False).parameters_sha256


def test_trainers_have_the_bits_of_local(jobs: Any) -> None:
    code, output, errors = jobs.run(5, str(HERE / "test_suites.py"), "-k", "TestTraining", "-q", "--color=no")
    assert code == 0, output + errors
    assert re.search(r"^\d+ passed, \d+ deselected in ", output, re.MULTILINE), output


def test_a_rank_that_is_killed_changes_no_bits_and_others_print_nothing(jobs: Any) -> None:
    jobs.write(60)
    job = jobs.start(4, "-m", "sigma_run", "run", "run.toml", "--json")
    jobs.wait_for("joined", 3)
    os.kill(jobs.find_ranks(job)[2], signal.SIGKILL)
    output, errors = job.communicate(timeout=200)
    assert job.returncode == 0, errors
    assert json.loads(output)["parameters_sha256"] == train_locally(jobs)
    assert errors.count("finished") == 2, errors  # the last line of progress, and the summary
    rows = [json.loads(line) for line in jobs.read_journal().splitlines()]
    assert [row["text"] for row in rows if row.get("event") == "lost"] == ["its process has ended"]
    assert [row["text"] for row in rows if row.get("event") == "generation"][-1].count(",") == 1  # two are left


def test_all_end_with_rank_0(jobs: Any) -> None:
    jobs.write(1_000_000)
    job = jobs.start(3, "-m", "sigma_run", "run", "run.toml")
    jobs.wait_for("joined", 2)
    first, *others = jobs.find_ranks(job)
    os.kill(first, signal.SIGKILL)
    job.communicate(timeout=5.0)
    assert job.returncode != 0
    assert wait_until_ended(others, 5.0) == []
