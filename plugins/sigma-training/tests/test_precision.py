"""Mixed precision as a setting of a run: what is rounded, how losses are scaled, and how a run goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaNetworkError
from sigma_operator_local import LocalOperator
from sigma_run.config.trained import load
from sigma_run.launcher import main
from sigma_step.graphs import training_step
from sigma_testing.steering import state_bytes
from sigma_training.minimisation import minimise

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((40, 6)).astype(np.float32)
NET = "input(6) + dense(8, activation='tanh') + output(1) + squared_difference()"
SCALE, GOOD, SKIPPED = (f"trainer.optimiser.{name}" for name in ("loss_scale", "good_steps", "skipped_steps"))
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
LOWS = pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])


def trained(
    precision: str = "mixed_float16", size: float = 1.0, folder: Path | None = None, **settings: Any
) -> tuple[Environment, Any]:
    """Return an environment, and its trainer of a small regression whose targets have about this size."""
    sigma = Environment("small", seed=1, precision=precision, folder=folder)
    targets = (size * (X[:, :1] - X[:, 1:2])).astype(np.float32)
    given = {"backend": "numpy", "network": NET, "optimiser": {"type": "adam", "learning_rate": 0.01}, "batch_size": 10}
    return sigma, sigma.create_trainer(**{**given, "data": {"inputs": X, "targets": targets}, **settings})


def arrays(trainer: Any) -> dict[str, np.ndarray]:
    return {name: trainer.session.host(name) for name in trainer.session.state.arrays}


# -- the setting -------------------------------------------------------------------------------------------------------
def test_mixed_stands_for_mixed_bfloat16_and_is_written_so(tmp_path: Path) -> None:
    sigma, trainer = trained("mixed", folder=tmp_path, epochs=1)
    assert (sigma.precision, trainer.precision, trainer.dtype) == ("mixed_bfloat16", "mixed_bfloat16", "float32")
    trainer.precision = "mixed"
    assert trainer.precision == "mixed_bfloat16"
    with sigma:
        sigma.run()
        assert 'precision = "mixed_bfloat16"' in (sigma.run_folder / "config.toml").read_text()  # type: ignore[operator]


@LOWS
def test_parameters_and_slots_are_float32_and_products_of_layers_alone_are_rounded(precision: str) -> None:
    low = precision.removeprefix("mixed_")
    network = "input(6) + dense(8) + output(4) + cosine_distance()"
    _, trainer = trained(precision, network=network, optimiser="muon", data={"inputs": X, "targets": X[:, :4]})
    trainer.fit(epochs=1)
    assert {x.dtype.name for name, x in arrays(trainer).items() if "layers" in name} == {"float32"}
    step, _ = trainer.session.setup.programs.get(training_step, 10)
    rounded = [node for node in step.graph if node.op == "mixed_matmul"]
    assert {node.attrs["dtype"] for node in rounded} == {low}
    assert len(rounded) == 5  # two forward, two for the weights, one for the hidden values
    assert sum(node.op == "matmul" for node in step.graph) > 9  # of muon


def test_float32_is_computed_as_before() -> None:
    _, trainer = trained("float32")
    trainer.fit(epochs=1)
    step, _ = trainer.session.setup.programs.get(training_step, 10)
    assert not {"mixed_matmul", "reduce_precision", "is_finite"} & {node.op for node in step.graph}
    assert "optimiser.loss_scale" not in arrays(trainer)


@LOWS
def test_both_backends_compute_the_same(precision: str) -> None:
    ends = []
    for backend in ("numpy", "numba"):
        _, trainer = trained(precision, backend=backend, optimiser={"type": "gradient_descent", "learning_rate": 0.05})
        trainer.fit(epochs=3)
        ends.append(arrays(trainer))
    for name, value in ends[0].items():
        np.testing.assert_allclose(value, ends[1][name], rtol=0, atol=2e-4, err_msg=name)


@pytest.mark.long_cases("mixed_float16")
@LOWS
def test_digits_are_learned_as_in_float32(precision: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = {}
    for each in ("float32", precision):
        given = ["--set", f"run.precision={each}", "--set", f"run.folder={tmp_path}", "--epochs", "20", "--json"]
        assert main(["run", "digits", "--quiet", *given]) == 0
        found[each] = json.loads(capsys.readouterr().out)["metrics"]["validation.accuracy"]
    assert found[precision] == pytest.approx(found["float32"], abs=0.01)
    assert found[precision] > 0.95


@LOWS
def test_a_loaded_network_predicts_in_the_precision_of_its_run(precision: str, tmp_path: Path) -> None:
    sigma, trainer = trained(precision, folder=tmp_path, epochs=2)
    with sigma:
        sigma.run()
        expected, run = trainer.predict(X), sigma.run_folder
    assert run is not None
    np.testing.assert_array_equal(load(run).predict(X), expected)


def test_a_function_is_minimised_in_mixed_precision() -> None:
    def loss(p: Any) -> Any:
        return f.mean(f.square(X[:, :2] @ p["w"] - X[:, 2:3]))

    exact, mixed = (
        minimise(loss, {"w": np.zeros((2, 1))}, optimiser="adam", iterations=50, precision=x, backend="numpy")["w"]
        for x in ("float32", "mixed")
    )
    assert 0 < np.abs(exact - mixed).max() < 0.01


# -- scaled losses -----------------------------------------------------------------------------------------------------
@BACKENDS
def test_a_step_whose_gradient_overflows_changes_nothing_but_the_scale(backend: str) -> None:
    sigma, trainer = trained(size=300.0, backend=backend)
    before = {**arrays(trainer)}
    trainer.fit(iterations=1)
    after = arrays(trainer)
    changed = {name for name, value in after.items() if value.tobytes() != before[name].tobytes()}
    assert changed == {"optimiser.loss_scale", "optimiser.skipped_steps", "random.iteration"}
    assert [sigma.get(x) for x in (SCALE, GOOD, SKIPPED, "trainer.training.skipped")] == [2.0**15, 0, 1, 1.0]


@BACKENDS
def test_the_scale_is_halved_until_no_gradient_overflows(backend: str) -> None:
    sigma, trainer = trained(size=300.0, backend=backend, batch_size=40)
    trainer.fit(iterations=12)
    scale, skipped = sigma.get(SCALE), sigma.get(SKIPPED)
    assert 0 < skipped < 12
    assert scale == 2.0 ** (16 - skipped)
    assert sigma.get(GOOD) == 12 - skipped
    assert int(trainer.session.host("optimiser.step")) == 12 - skipped
    assert trainer.session.host("network.layers.2-output.weights").dtype == np.float32


@BACKENDS
def test_the_scale_is_not_halved_below_what_float16_can_use(backend: str) -> None:
    sigma, trainer = trained(size=1e15, backend=backend)
    sigma.set(SCALE, 2.0**-23)
    trainer.fit(iterations=3)
    assert (sigma.get(SCALE), sigma.get(SKIPPED)) == (2.0**-24, 3)


@pytest.mark.long_cases("numpy")
@BACKENDS
def test_after_2000_good_steps_the_scale_doubles(backend: str) -> None:
    sigma, trainer = trained(backend=backend, batch_size=40)
    sigma.set(SCALE, 8.0)
    trainer.fit(iterations=1999)
    assert (sigma.get(SCALE), sigma.get(GOOD)) == (8.0, 1999)
    trainer.fit(iterations=1)
    assert (sigma.get(SCALE), sigma.get(GOOD), sigma.get(SKIPPED)) == (16.0, 0, 0)


def test_small_gradients_survive_by_the_scale() -> None:
    weight = {"network": NET.replace("squared_difference()", "squared_difference(weight=1e-7)")}
    slopes = {}
    for precision, scale in (("float32", None), ("mixed_float16", 2.0**16), ("mixed_float16", 1.0)):
        sigma, trainer = trained(precision, optimiser={"type": "gradient_descent", "learning_rate": 1e6}, **weight)
        if scale is not None:
            sigma.set(SCALE, scale)
        before = arrays(trainer)["network.layers.1-dense.weights"]
        trainer.fit(iterations=1)
        slopes[scale] = arrays(trainer)["network.layers.1-dense.weights"] - before
    np.testing.assert_allclose(slopes[2.0**16], slopes[None], rtol=0, atol=0.01 * np.abs(slopes[None]).max())
    assert np.abs(slopes[1.0] - slopes[None]).max() > 0.1 * np.abs(slopes[None]).max()


def test_a_loss_that_is_not_finite_still_ends_training() -> None:
    _, trainer = trained(size=1e30)
    with pytest.raises(Exception, match="the loss is"):
        trainer.fit(iterations=3)


def test_shards_skip_a_step_together() -> None:
    sigma, trainer = trained(size=300.0, operator=LocalOperator(shards=2))
    before = {**arrays(trainer)}
    trainer.fit(iterations=1)
    name = "network.layers.1-dense.weights"
    assert arrays(trainer)[name].tobytes() == before[name].tobytes()
    assert (sigma.get(SCALE), sigma.get(SKIPPED), sigma.get("trainer.training.skipped")) == (2.0**15, 1, 1.0)
    trainer.fit(iterations=14)
    assert arrays(trainer)[name].tobytes() != before[name].tobytes()


def test_each_of_several_optimisers_scales_its_own_loss() -> None:
    both = {"a": {"type": "adam", "match": "1-dense.*"}, "b": {"type": "adam", "match": "2-output.*"}}
    sigma, trainer = trained(size=300.0, optimiser=None, optimisers=both)
    trainer.fit(iterations=12)
    for name in both:
        skipped = sigma.get(f"trainer.optimisers.{name}.skipped_steps")
        assert sigma.get(f"trainer.optimisers.{name}.loss_scale") == 2.0 ** (16 - skipped)
        assert skipped


# -- the life of a run -------------------------------------------------------------------------------------------------
@BACKENDS
def test_a_run_resumes_and_replays_to_the_bit_after_skipped_steps(backend: str, tmp_path: Path) -> None:
    def begun(name: str, epochs: int) -> Environment:
        return trained(size=300.0, backend=backend, folder=tmp_path / name, epochs=epochs)[0]

    with begun("whole", 4) as sigma:
        sigma.run()
        whole, skipped = state_bytes(sigma.trainers["trainer"]), sigma.get(SKIPPED)
    with begun("cut", 1) as sigma:
        sigma.run()
        run, early = sigma.run_folder, sigma.get(SKIPPED)
    assert 0 < early < skipped
    assert run is not None
    with begun("cut", 4) as again:
        again.resume(run)
        assert again.get(SKIPPED) == early
        again.run()
        assert state_bytes(again.trainers["trainer"]) == whole
    with begun("cut", 4) as last:
        assert last.replay(run)[1] == {}


def test_the_scale_is_set_live_and_replayed(tmp_path: Path) -> None:
    sigma, _ = trained(folder=tmp_path, epochs=1)
    with sigma:
        sigma.prepare()
        sigma.set(SCALE, 1024.0)
        assert sigma.get(SCALE) == 1024.0
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    assert "optimiser.loss_scale" in (run / "journal.jsonl").read_text()
    with trained(folder=tmp_path, epochs=1)[0] as again:
        assert again.replay(run)[1] == {}
        assert again.get(SCALE) == 1024.0


@pytest.mark.parametrize("wrong", [0.0, -2.0, float("nan"), float("inf"), "big"])
def test_a_scale_out_of_range_is_refused(wrong: Any) -> None:
    sigma, trainer = trained()
    trainer.prepare()
    with pytest.raises(SigmaAddressError, match="optimiser.loss_scale: must be a number, at least 5.9"):
        sigma.set(SCALE, wrong)
    with pytest.raises(SigmaAddressError, match="good_steps"):
        sigma.set(GOOD, 3)


def test_a_new_optimiser_begins_with_a_new_scale() -> None:
    sigma, trainer = trained(size=300.0)
    trainer.fit(iterations=3)
    sigma.swap("optimiser", {"type": "momentum", "learning_rate": 0.001})
    assert (sigma.get(SCALE), sigma.get(SKIPPED)) == (2.0**16, 0)
    with pytest.raises(SigmaConfigError, match="mixed_float16 scales the loss .* LBFGS does not support"):
        sigma.swap("optimiser", "l_bfgs")


# -- what does not fit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["l_bfgs", "cma_es", "random_search"])
def test_loss_scaling_needs_an_optimiser_that_takes_gradients_once(name: str) -> None:
    _, trainer = trained(optimiser=name, batch_size=40)
    with pytest.raises(SigmaConfigError, match="optimiser: mixed_float16 .* Choose precision = 'mixed_bfloat16'"):
        trainer.prepare()
    _, trainer = trained("mixed", optimiser=name, batch_size=40)
    found = trainer.fit(iterations=30)["training.loss"]
    assert found[-1] < found[0]


@LOWS
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_inputs_of_other_dtypes_do_not_mix(precision: str, dtype: str) -> None:
    _, trainer = trained(precision, network=NET.replace("input(6)", f"input(6, dtype='{dtype}')"))
    with pytest.raises(SigmaNetworkError, match=f"1-dense: .* dtypes {dtype} and float32 do not mix. Cast one"):
        trainer.prepare()


def test_words_that_are_no_precision_are_refused_with_those_that_are() -> None:
    with pytest.raises(SigmaConfigError, match="precision: must be .*'mixed' or 'mixed_bfloat16' or 'mixed_float16'"):
        Environment("a", precision="mixed16")
    _, trainer = trained("float32")
    trainer.precision = "bfloat16"
    with pytest.raises(SigmaConfigError, match="It has float32, float64, mixed_bfloat16, mixed_float16"):
        trainer.prepare()


# -- what is said of it ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("precision", "said"),
    [("mixed", "products read bfloat16 and add in float32; all else is float32\n"),
     ("mixed_float16", "products read float16 and add in float32; all else is float32, and losses are scaled\n")],
)  # fmt: skip
def test_explain_and_check_show_the_precision(precision: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["xor", "--set", f"run.precision={precision}", "--set", "run.backend=numpy"]
    assert main(["explain", *given]) == 0
    full = {"mixed": "mixed_bfloat16"}.get(precision, precision)
    out = capsys.readouterr().out
    assert out.startswith(f"xor, trainer: {full} on numpy, seed 0")
    assert said in out
    assert main(["check", *given]) == 0
    assert capsys.readouterr().err == f"ok, in {full}\n"
