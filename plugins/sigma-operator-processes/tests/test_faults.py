"""Real training under faults: workers that are killed, suspended, or print; scripts; what is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sigma_kernel import Environment, SigmaConfigError, SigmaStateError
from sigma_kernel.contracts import StartOrder, WorkerLost
from sigma_operator_processes import ProcessesOperator, transport as transport_module
from sigma_operator_processes.output import OutputThread
from sigma_operator_processes.transport import ProcessesTransport
from sigma_operator_processes.workers import describe_end
from sigma_run import config
from sigma_testing.transports.driving import read_events, remember_transports, wait_until_ended

PATIENCE = 60.0
TEXT = """
format = 1
[run]
name = "small"
seed = 3
backend = "numpy"
[data]
dataset = "digits"
batch_size = 100
[network]
architecture = 'input(8, 8) + flatten() + dense(30, activation="relu") + output(10) + softmax_cross_entropy()'
[trainer]
epochs = 40
operator = {{ type = "{operator}", shards = 4, workers = {workers}{more} }}
[trainer.optimiser]
type = "adam"
"""


@pytest.fixture
def transports(monkeypatch: pytest.MonkeyPatch) -> list[ProcessesTransport]:
    """The transports that are made meanwhile."""
    return remember_transports(ProcessesOperator, monkeypatch)


def build(operator: str = "processes", workers: int = 3, folder: Path | None = None, **more: float) -> Environment:
    settings = "".join(f", {name} = {value}" for name, value in more.items())
    return config.build(config.load(TEXT.format(operator=operator, workers=workers, more=settings)), folder=folder)


def train(environment: Environment, after: int, harm: Callable[[], None]) -> str | None:
    """Train, do some harm once there are so many iterations, and return the hash of the parameters."""
    handle = environment.run_async(progress=False)
    until(lambda: handle.has_ended or environment.get("trainer.iteration") > after)
    harm()
    assert handle.wait(PATIENCE)
    return handle.result().parameters_sha256


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


def list_segments() -> set[str]:
    """Return the shared memory that has a name: of this project, or of Python; other programs have their own."""
    return {path.name for path in Path("/dev/shm").glob("*") if path.name.startswith(("sigma", "psm_", "sem."))}


def run_script(text: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(dedent(text))
    command = [sys.executable, *options, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture(scope="module")
def undisturbed() -> str | None:
    with build("local", 1) as environment:
        return environment.run(progress=False).parameters_sha256


def test_workers_that_are_killed_change_no_bits(
    undisturbed: str, transports: list[ProcessesTransport], tmp_path: Path
) -> None:
    with build(folder=tmp_path) as environment:

        def kill() -> None:
            os.kill(transports[0].processes[1], signal.SIGKILL)
            until(lambda: 3 in transports[0].processes)  # another one was started
            os.kill(transports[0].processes[0], signal.SIGKILL)

        assert train(environment, 20, kill) == undisturbed
        lost = read_events(environment.run_folder, "lost")
    assert [(row["worker"], row["text"]) for row in lost] == [
        (worker, "its process was ended by SIGKILL") for worker in (1, 0)
    ]


@pytest.mark.long
def test_a_worker_that_is_suspended_and_goes_on_changes_no_bits(
    undisturbed: str, transports: list[ProcessesTransport], tmp_path: Path
) -> None:
    with build(folder=tmp_path, lost_after=1.0) as environment:

        def suspend() -> None:
            number = transports[0].processes[2]
            os.kill(number, signal.SIGSTOP)
            until(lambda: 3 in transports[0].processes)  # it was lost
            os.kill(number, signal.SIGCONT)
            assert wait_until_ended([number], 5.0) == []

        assert train(environment, 20, suspend) == undisturbed
        assert [row["worker"] for row in read_events(environment.run_folder, "lost")] == [2]


@pytest.mark.long
def test_ctrl_c_in_the_terminal_reaches_the_operator_alone(
    undisturbed: str, transports: list[ProcessesTransport], tmp_path: Path
) -> None:
    with build(folder=tmp_path) as environment:

        def interrupt() -> None:
            for number in transports[0].processes.values():
                assert os.getpgid(number) != os.getpgid(0)
                os.kill(number, signal.SIGINT)  # nor one that reaches them

        assert train(environment, 20, interrupt) == undisturbed
        assert read_events(environment.run_folder, "lost") == []


def test_a_script_is_not_run_again_by_workers_and_what_they_print_has_their_number(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import sys\nprint('loaded', flush=True)\nprint('partly', end='')\n")
    ended = run_script(
        """
        import numpy as np
        import sigma_ml as sm
        import own
        from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy
        from sigma_operator_processes import ProcessesOperator

        print("script", __name__)
        draw = np.random.default_rng(0)
        x, y = draw.normal(size=(60, 4)).astype("float32"), draw.integers(0, 3, 60)
        with sm.Environment("mine") as sigma:
            sigma.create_trainer(
                network=Input(4) + Dense(8) + Output(3) + SoftmaxCrossEntropy(),
                data={"training": (x, y)}, batch_size=10, epochs=3, optimiser="adam", backend="numpy",
                operator=ProcessesOperator(workers=2, shards=2),
            )
            print(sigma.run(progress=False).iterations)
        """,
        tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["loaded", "partlyscript", "__main__", "18"]


def test_a_line_without_an_end_is_printed_though_another_process_holds_the_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reading, writing = os.pipe()
    output = OutputThread()
    output.add(4, reading)
    os.write(writing, b"one line\nno end")
    output.start()
    output.close(30.0)
    os.close(writing)
    assert capsys.readouterr().err == "[worker 4] one line\n[worker 4] no end\n"


def test_lines_of_workers_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        dedent(
            """
            import os, sys
            from attrs import frozen

            @frozen
            class Talk:
                plugins = {}

                def serve(self, worker, channel):
                    print("good day")
                    os.system("echo from a shell; sleep 100 &")
                    print("no end", end="", file=sys.stderr)
            """
        )
    )
    ended = run_script(
        """
        import own
        from sigma_kernel.contracts import StartOrder
        from sigma_operator_processes import ProcessesOperator

        transport = ProcessesOperator().connect()
        transport.start(own.Talk(), 1)
        transport.send([StartOrder(4)])
        print(*transport.events(60.0))
        transport.close()
        """,
        tmp_path,
    )
    assert ended.stdout == "WorkerLost(worker=4, reason='its process has ended with exit code 0')\n", ended.stderr
    assert sorted(ended.stderr.splitlines()) == ["[worker 4] from a shell", "[worker 4] good day", "[worker 4] no end"]


def test_each_worker_sees_a_device_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        dedent(
            """
            import os
            from attrs import frozen
            from sigma_kernel.contracts import WorkerFailed

            @frozen
            class See:
                plugins = {}

                def serve(self, worker, channel):
                    channel.send([WorkerFailed(worker, os.environ["CUDA_VISIBLE_DEVICES"])])
                    while worker != 1:
                        channel.orders(1.0)
            """
        )
    )
    ended = run_script(
        """
        import own
        from sigma_kernel.contracts import StartOrder, WorkerFailed
        from sigma_operator_processes import ProcessesOperator

        transport = ProcessesOperator(workers=3, shards=3, devices=["4", "7", "5"]).connect()
        transport.start(own.See(), 3)
        seen = {}
        for number in range(4):  # the second ends, and the last one takes its place
            transport.send([StartOrder(number)])
            while number not in seen or (number == 2 and 1 in transport.processes):
                seen |= {e.worker: e.traceback for e in transport.events(1.0) if isinstance(e, WorkerFailed)}
        print(seen)
        transport.close()
        """,
        tmp_path,
    )
    assert ended.stdout.strip() in (
        "{0: '4', 1: '7', 2: '5', 3: '7'}",
        "{0: '4', 1: '7', 2: '7', 3: '5'}",  # it has ended before the third began
    ), ended.stderr


def test_what_is_defined_in_a_script_is_refused_with_the_remedy(tmp_path: Path) -> None:
    ended = run_script(
        """
        from attrs import frozen
        from sigma_kernel.contracts import StartOrder
        from sigma_operator_processes import ProcessesOperator

        @frozen
        class Own:
            plugins = {}

        transport = ProcessesOperator().connect()
        transport.start(Own(), 1)
        transport.send([StartOrder(0)])
        [event] = transport.events(60.0)
        print(event.traceback)
        transport.close()
        """,
        tmp_path,
    )
    assert "Can't get attribute 'Own'" in ended.stdout, ended.stderr
    assert "must be in a module that can be imported" in ended.stdout


def test_what_cannot_be_pickled_is_refused_before_anything_starts() -> None:
    transport = ProcessesOperator().connect()
    with pytest.raises(SigmaConfigError, match=r"what is trained cannot be sent to workers.*Define its classes"):
        transport.start(lambda: 0, 1)  # type: ignore[arg-type]
    transport.close()


def test_nothing_is_left_behind_by_an_operator_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        TEXT.format(operator="processes", workers=2, more="").replace("epochs = 40", "epochs = 4000")
    )
    before = list_segments()
    code = """
        import threading, time
        from pathlib import Path
        import sigma_ml as sm
        from sigma_operator_processes import ProcessesOperator

        connect = ProcessesOperator.connect
        def remember(operator):
            global transport
            transport = connect(operator)
            return transport
        ProcessesOperator.connect = remember
        sigma = sm.from_file(Path("run.toml"))
        sigma.run_async(progress=False)
        while not sigma.get("trainer.iteration"):
            time.sleep(0.01)
        print(*transport.processes.values(), flush=True)
        time.sleep(100)
    """
    (tmp_path / "script.py").write_text(dedent(code))
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stdout=subprocess.PIPE) as operator:
        assert operator.stdout is not None
        numbers = [int(number) for number in operator.stdout.readline().split()]
        operator.kill()
    assert len(numbers) == 2
    assert wait_until_ended(numbers, 5.0) == []
    assert list_segments() == before


def test_a_worker_that_cannot_be_started_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(transport_module, "start_worker", fail)
    transport = ProcessesOperator().connect()
    transport.start("anything", 1)  # type: ignore[arg-type]
    transport.send([StartOrder(0)])
    [lost] = transport.events(10.0)
    assert isinstance(lost, WorkerLost)
    assert lost.reason.startswith("its process could not be started: ")
    transport.close()


def test_an_error_in_the_thread_reaches_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(transport_module, "start_worker", fail)
    transport = ProcessesOperator().connect()
    transport.start("anything", 1)  # type: ignore[arg-type]
    transport.send([StartOrder(0)])
    with pytest.raises(SigmaStateError, match="its thread has failed"):
        transport.events(5.0)
    transport.close()


def test_a_system_without_shared_memory_between_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "send_fds")
    with pytest.raises(SigmaConfigError, match="Use operator = 'local'"):
        ProcessesOperator().connect()


def test_the_ends_of_processes_are_told_in_words() -> None:
    assert describe_end(3) == "its process has ended with exit code 3"
    assert describe_end(-signal.SIGSEGV) == "its process was ended by SIGSEGV"
    assert describe_end(-99) == "its process was ended by signal 99"
