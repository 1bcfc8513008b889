"""Jobs of MPI from their beginning to their end: signals, resumes, losses, versions, own ranks, other kinds of MPI."""

from __future__ import annotations

import json
import os
import signal
from textwrap import dedent
from typing import Any

import pytest

from sigma_testing.transports.driving import wait_until_ended

pytestmark = pytest.mark.long
RUN = ("-m", "sigma_run", "run", "run.toml")


def resume(jobs: Any, ranks: int) -> dict[str, Any]:
    [folder] = (jobs.folder / "runs").iterdir()
    code, output, errors = jobs.run(ranks, "-m", "sigma_run", "resume", str(folder), "--json")
    assert code == 0, errors
    return dict(json.loads(output))


def train(jobs: Any, ranks: int, **settings: Any) -> dict[str, Any]:
    code, output, errors = jobs.run(ranks, *RUN, "--json", "--quiet", "--set", "run.folder='undisturbed'", **settings)
    assert (code, errors) == (0, "")
    return dict(json.loads(output))


@pytest.mark.parametrize("tolerant", [True, False])
def test_any_number_of_ranks_gives_the_same_bits(tolerant: bool, jobs: Any) -> None:
    jobs.write(3)
    assert len({train(jobs, ranks, tolerant=tolerant)["parameters_sha256"] for ranks in (2, 3, 4)}) == 1


def test_rank_0_alone_is_stopped_and_fewer_ranks_resume(jobs: Any) -> None:
    jobs.write(60)
    job = jobs.start(4, *RUN)
    jobs.wait_for("joined", 3)
    for process in reversed(jobs.find_ranks(job)):
        os.kill(process, signal.SIGTERM)
    output, errors = job.communicate(timeout=20.0)
    assert job.returncode == 143, output + errors
    assert "sigma resume" in errors
    assert resume(jobs, 2)["parameters_sha256"] == train(jobs, 3)["parameters_sha256"]


def test_mpiexec_passes_on_sigusr1_which_saves_and_sigint_which_ends_all(jobs: Any) -> None:
    jobs.write(1_000_000)
    job = jobs.start(3, *RUN)
    jobs.wait_for("joined", 2)
    job.send_signal(signal.SIGUSR1)
    jobs.until(lambda: list(jobs.folder.glob("runs/*/checkpoints/*/*/manifest.sha256")))
    ranks = jobs.find_ranks(job)
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=5.0)
    assert wait_until_ended(ranks, 5.0) == []


def test_a_run_ends_when_too_few_ranks_are_left_and_is_resumed(jobs: Any) -> None:
    jobs.write(60, at_least=2)
    job = jobs.start(4, *RUN)
    jobs.wait_for("joined", 3)
    for process in jobs.find_ranks(job)[2:]:
        os.kill(process, signal.SIGKILL)
    output, errors = job.communicate(timeout=60.0)
    assert job.returncode == 1, output + errors
    assert "operator 'mpi': 1 ranks are left that compute, of at least 2. `sigma resume` goes on with others." in errors
    assert resume(jobs, 3)["parameters_sha256"] == train(jobs, 3)["parameters_sha256"]


def test_too_few_ranks_are_told_before_training(jobs: Any) -> None:
    jobs.write(1, at_least=3)
    code, output, errors = jobs.run(3, *RUN, "--workers", "4")
    assert (code, output) == (2, "")
    assert "at least 3 workers are needed, and the job has 2 ranks beside rank 0. Run `mpiexec -n 4 ...`." in errors
    jobs.write(1)
    code, output, errors = jobs.run(3, *RUN, "--workers", "4", "--json")
    assert code == 0
    assert "4 workers are wanted, and the job has 2 ranks beside rank 0. Run `mpiexec -n 5 ...`." in errors
    code, output, errors = jobs.run(1, *RUN)
    assert code == 2
    assert "the job has one rank, which runs the command, and none that computes. Run `mpiexec -n 4 sigma" in errors


def test_mistakes_of_a_configuration_are_told_once(jobs: Any) -> None:
    jobs.write(0, workers=99)
    code, output, errors = jobs.run(3, *RUN)
    assert (code, output) == (2, "")
    assert errors.count("workers = 99: more than shards = 12") == 1
    assert errors.count("epochs") == 1


def test_a_rank_that_was_suspended_becomes_a_worker_again(jobs: Any) -> None:
    jobs.write(400, lost_after=1.0)
    job = jobs.start(3, *RUN, "--json")
    jobs.wait_for("joined", 2)
    process = jobs.find_ranks(job)[1]
    os.kill(process, signal.SIGSTOP)
    jobs.wait_for("lost")
    os.kill(process, signal.SIGCONT)
    jobs.wait_for("joined", 3)
    output, errors = job.communicate(timeout=200.0)
    assert job.returncode == 0, errors
    assert json.loads(output)["parameters_sha256"] == train(jobs, 2)["parameters_sha256"]


def test_without_fault_tolerance_a_death_ends_the_job(jobs: Any) -> None:
    jobs.write(1_000_000)
    job = jobs.start(3, *RUN, tolerant=False)
    jobs.wait_for("joined", 2)
    ranks = jobs.find_ranks(job)
    os.kill(ranks[1], signal.SIGKILL)
    job.communicate(timeout=5.0)
    assert job.returncode != 0
    assert wait_until_ended(ranks, 5.0) == []


def test_ranks_with_other_plugins_are_refused_by_name(jobs: Any) -> None:
    jobs.write(1)
    (jobs.folder / "script.py").write_text(
        dedent(
            """
            import os, sys
            from sigma_kernel import catalogue
            from sigma_run.launcher import main

            if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
                versions = type(catalogue()).versions
                type(catalogue()).versions = lambda self: versions(self) | {"sigma-layers": "9.9"}
            sys.exit(main(["run", "run.toml", "--quiet"]))
            """
        )
    )
    code, output, errors = jobs.run(3, "script.py")
    assert code == 1
    assert "this worker has other plugins than the operator" in errors
    assert "sigma-layers" in errors
    assert "9.9" in errors
    assert "Traceback" not in output


def test_a_script_runs_on_rank_0_alone_from_the_operator_on(jobs: Any) -> None:
    (jobs.folder / "own.py").write_text(
        dedent(
            """
            from sigma_kernel import functions as f
            from sigma_kernel.contracts import Layer

            class Loud(Layer):
                def forward(self, context, x):
                    print("traced")
                    return f.tanh(x)
            """
        )
    )
    (jobs.folder / "script.py").write_text(
        dedent(
            """
            import numpy as np
            import own
            import sigma_ml as sm
            from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy
            from sigma_operator_mpi import MpiOperator

            operator = MpiOperator(shards=2)
            print("begins", operator.workers)
            draw = np.random.default_rng(0)
            x, y = draw.normal(size=(60, 4)).astype("float32"), draw.integers(0, 3, 60)
            for _ in range(2):  # the ranks serve several runs
                with sm.Environment("mine") as sigma:
                    sigma.create_trainer(
                        network=Input(4) + Dense(8) + own.Loud() + Output(3) + SoftmaxCrossEntropy(),
                        data={"training": (x, y)}, batch_size=10, epochs=3, optimiser="adam", backend="numpy",
                        operator=operator,
                    )
                    print(sigma.run(progress=False).iterations)
            """
        )
    )
    code, output, errors = jobs.run(4, "script.py", PYTHONPATH=str(jobs.folder))
    assert code == 0, errors
    lines = output.splitlines()
    assert [line for line in lines if line != "traced"] == ["begins 2", "18", "18"]
    assert {line for line in errors.splitlines() if "traced" in line} == {"[worker 0] traced", "[worker 1] traced"}
