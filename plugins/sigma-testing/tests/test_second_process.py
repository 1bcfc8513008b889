"""Components that depend on the order of a set of texts are found by a process with another seed of hashes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from sigma_testing.second_process import SEED, ProcessEndedError, SecondProcess, digest_results, import_test_module

NAMES = "abcdefgh"
ORDER = f"int(''.join(str('{NAMES}'.index(x)) for x in {{*'{NAMES}'}}))"  # of a set: eight digits
TEST = "test_a_process_with_another_seed_of_hashes_computes_the_same"
SENTENCE = (
    "expected that a process with another seed of hashes computes the same, but: it returns other numbers in a process "
    "with another PYTHONHASHSEED: "
)
IMPORTS = """
    import os
    import pyarrow as pa
    import pytest
    from attrs import define
    from sigma_kernel import Layer
    from sigma_kernel.contracts import Encoder, GradientOptimiser
    from sigma_testing import BackendSuite, EncoderSuite, LayerSuite, LoweringSuite, NullBackend, OptimiserSuite, Sample
    from sigma_testing.suite import Suite
"""
COMPONENTS = """
    @define(eq=False)
    class Scale(Layer):
        by: float = 2.0

        def forward(self, context, x):
            return x * self.by

    @define(eq=False)
    class Descent(GradientOptimiser):
        by: float = 2.0

        def update(self, gradient, parameter, slots, step, hyper):
            return parameter - gradient * hyper["learning_rate"] * self.by, {}

    @define(eq=False)
    class Codes(Encoder):
        section = "inputs"
        kinds = ("category",)
        order = staticmethod(sorted)

        def fit(self, batches, targets=None):
            return {"values": [*self.order({x for batch in batches for x in batch.to_pylist()})]}

        def apply(self, column, state):
            return np.array([[state["values"].index(x)] for x in column.to_pylist()], np.int32)

        def names(self, column, state):
            return (column,)

    class Turns(NullBackend):
        by = 1.0

        def to_host(self, array):
            return (super().to_host(array) * self.by).astype(array.dtype)

    class OfKernel(LoweringSuite):
        name = "null"

        def samples(self):
            return [Sample("tanh", (np.linspace(-1.0, 1.0, 8),))]

    class OfEncoder(EncoderSuite):
        def column(self):
            return pa.array([*"abcdefgh"])

        def unseen(self):
            return pa.array(["z"])
"""
SUITES = f"""
    import numpy as np

    class TestLayer(LayerSuite):
        def make(self):
            return Scale()

    class TestOptimiser(OptimiserSuite):
        def make(self):
            return Descent(learning_rate=0.01)

    class TestEncoder(OfEncoder):
        def make(self):
            return Codes()

    class TestBackend(BackendSuite):
        def make(self):
            return Turns()

    class TestKernel(OfKernel):
        def make(self):
            return Turns()

    class TurnsBySet(Turns):
        by = {ORDER} / 1e7

    class TestFaultOfBackend(BackendSuite):
        def make(self):
            return TurnsBySet()

    class TestFaultOfKernel(OfKernel):
        def make(self):
            return TurnsBySet()

    class TestFaultOfLayer(LayerSuite):
        def make(self):
            return Scale({ORDER} / 1e7)

    class TestFaultOfOptimiser(OptimiserSuite):
        def make(self):
            return Descent(learning_rate=0.01, by={ORDER} / 1e7)

    class CodesOfSet(Codes):
        order = list

    class TestFaultOfEncoder(OfEncoder):
        def make(self):
            return CodesOfSet()
"""


def run(folder: Path, text: str, *options: str, seed: str = "0") -> tuple[dict[str, str], str]:
    """Run the one test of all suites of a module; return the outcomes by suite, and the output."""
    path = folder / "rooms" / "acme-zoo" / "tests" / "test_zoo.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(IMPORTS) + dedent(COMPONENTS) + dedent(text), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "--import-mode=importlib", "-p", "no:cacheprovider", "-k", TEST]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [*command, *options, str(path)], cwd=folder, env=environment | {SEED: seed}, capture_output=True, text=True
    )
    outcomes = re.findall(rf"^(PASSED|FAILED) \S+::(\w+)::{TEST}", done.stdout, re.MULTILINE)
    return {name: outcome for outcome, name in outcomes}, done.stdout + done.stderr


def order(seed: str) -> str:
    done = subprocess.run([sys.executable, "-c", f"print({ORDER})"], env=os.environ | {SEED: seed}, capture_output=True)
    return done.stdout.decode()


@pytest.mark.long_cases("1-2")
@pytest.mark.parametrize(("seed", "other"), [("0", "1"), ("1", "2")])
def test_planted_orders_of_sets_are_found_and_right_components_pass(tmp_path: Path, seed: str, other: str) -> None:
    assert order(seed) != order(other)
    outcomes, output = run(tmp_path, SUITES, seed=seed)
    right = ("Layer", "Optimiser", "Encoder", "Backend", "Kernel")
    expected = {f"Test{x}": "PASSED" for x in right} | {f"TestFaultOf{x}": "FAILED" for x in right}
    assert outcomes == expected, output
    evaluated = ("gradients, values in evaluation, values in training.", "losses, parameters.", "state, values.")
    for names in (*evaluated, "large results, losses, state.", "values."):
        assert f"{SENTENCE}{names} Order what you take from a set of texts, as with sorted()." in output


@pytest.mark.long
def test_it_works_with_workers_of_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    outcomes, output = run(tmp_path, SUITES, "-n2")
    assert sorted(outcomes.values()) == ["FAILED"] * 5 + ["PASSED"] * 5, output


def test_what_ends_the_process_is_named_and_the_next_suite_is_compared(tmp_path: Path) -> None:
    text = f"""
    import numpy as np
    HERE = os.environ["{SEED}"] == "0"

    class TestEnd(LayerSuite):
        def make(self):
            HERE or os.write(2, b"out of memory\\n") and os._exit(3)
            return Scale()

    class TestError(LayerSuite):
        def make(self):
            if not HERE:
                raise OSError("no such device")
            return Scale()

    class TestFixture(LayerSuite):
        @pytest.fixture(autouse=True)
        def by(self):
            self.factor = 3.0

        def make(self):
            return Scale(self.factor)

    class TestNext(LayerSuite):
        def make(self):
            return Scale({ORDER} / 1e7)
    """
    outcomes, output = run(tmp_path, text)
    assert outcomes == {"TestEnd": "FAILED", "TestFixture": "PASSED", "TestNext": "FAILED"}, output
    assert "in a process with another PYTHONHASHSEED it ends the process (exit code 3: out of memory)" in output
    assert "TestError: results are not compared, as a second process raises OSError: no such device" in output


@pytest.mark.long
def test_results_that_differ_each_time_are_not_blamed_on_hashes(tmp_path: Path) -> None:
    text = """
    import numpy as np

    class TestTimes(LayerSuite):
        def make(self):
            return Scale(np.random.default_rng().normal())
    """
    _, output = run(tmp_path, text)
    assert "it returns other numbers each time: gradients, values in evaluation, values in training." in output


def test_no_process_is_left_behind() -> None:
    second = SecondProcess()
    for _ in range(2):
        second.ask(SecondProcess)
        assert "errors" in second.answer()
        process = second.process
        assert process
        assert process.poll() is None
        second.close()
        assert process.poll() == 0
        assert second.process is None


def test_a_process_that_has_ended_is_started_again() -> None:
    second = SecondProcess()
    second.ask(SecondProcess)
    second.answer()
    assert second.process
    second.process.kill()
    second.process.wait()
    second.ask(SecondProcess)
    with pytest.raises(ProcessEndedError, match="exit code -9"):
        second.answer()
    second.ask(SecondProcess)
    second.answer()
    second.close()


def test_it_ends_with_the_process_that_asks() -> None:
    code = "from sigma_testing.second_process import SecondProcess as S; s = S(); s.ask(S); s.answer(); "
    code += "import os; print(s.process.pid, flush=True); os._exit(0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    number, end = int(done.stdout), time.monotonic() + 60.0
    while is_running(number):
        assert time.monotonic() < end, f"process {number} runs on"
        time.sleep(0.02)


def is_running(number: int) -> bool:
    """Return whether a process runs; one that has ended, and that nobody has waited for, does not."""
    try:
        os.kill(number, 0)
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # another system, or it has ended just now
        return not Path("/proc/self/stat").exists()


def test_a_module_that_another_file_hides_is_refused(tmp_path: Path) -> None:
    (tmp_path / "json.py").touch()
    with pytest.raises(ImportError, match=r"json: is .*, instead of .*json.py"):
        import_test_module("json", str(tmp_path / "json.py"))


def test_digests_tell_results_apart_and_nothing_else() -> None:
    x = np.arange(6.0)
    values = [x, x.astype(np.float32), x.reshape(2, 3), -x, [*x], 1, 1.0, "1", b"1", None, True, ["a", "b"], ["ab"],
              {"a": 1, "b": 2}, {"a": 2, "b": 1}, [0.0], [-0.0], np.array(["a", None], object)]  # fmt: skip
    assert len({digest_results({"it": value})["it"] for value in values}) == len(values)
    assert digest_results({"it": {"b": 2, "a": x}}) == digest_results({"it": {"a": x.copy(), "b": 2}})
    with pytest.raises(TypeError, match="set: is no result to compare. Return arrays, numbers and texts."):
        digest_results({"it": {"a", "b"}})
