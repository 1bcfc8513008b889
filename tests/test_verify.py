"""``[run] verify``: recipes on every backend agree with the reference, and injected faults are found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel import Environment, after
from sigma_kernel.errors import SigmaTrainingError

pytestmark = pytest.mark.rooms
numba = pytest.importorskip("sigma_backend_numba.scalars")
numpy_program = pytest.importorskip("sigma_backend_numpy.program")
layers = pytest.importorskip("sigma_layers")
hooks = pytest.importorskip("sigma_hooks")
local = pytest.importorskip("sigma_operator_local")
optimisers = pytest.importorskip("sigma_optimisers")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
LABELS = RNG.integers(0, 3, 60).astype(np.int32)


def settings(epochs, **run):
    given = [f"hooks.finish.when=epoch reaches {epochs}", *(f"run.{name}={value}" for name, value in run.items())]
    return [word for one in given for word in ("--set", one)] + ["--json", "--quiet"]


# -- correct runs ------------------------------------------------------------------------------------------------------
@pytest.mark.long_cases("digits-numba-float32", "digits-numba-float64", "wdbc-numpy-float32")
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("recipe", ["iris", "xor", "wdbc", "digits"])
def test_a_recipe_agrees_with_the_reference_and_has_the_same_bits(sigma, recipe, backend, precision):
    found = []
    for more in ({}, {"verify": "1 epoch"}):
        code, out, err = sigma("run", recipe, *settings(3, backend=backend, precision=precision, **more))
        assert code == 0, err
        found.append(json.loads(out)["parameters_sha256"])
    assert found[0] == found[1]
    journal = Path(json.loads(out)["folder"], "config.toml").read_text()
    assert 'verify = "every 1 epoch"' in journal


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_weights_dropout_convolutions_and_shards_agree_with_the_reference(backend, shards):
    images = RNG.normal(size=(60, 1, 8, 8)).astype(np.float32)
    network = layers.Input(1, 8, 8) + layers.Conv2d(4, 3, padding="same", activation="relu") + layers.MaxPool(2)
    network = network + layers.Flatten() + layers.Dropout(0.2) + layers.Dense(16, "gelu") + layers.Output(3)
    network = network + layers.SoftmaxCrossEntropy(class_weights=[0.1, 1.0, 7.0])
    with trained(network, backend, shards, data=(images, LABELS), interval=4) as sigma:  # the last of each epoch
        assert sigma.trainer("trainer").session.state.memory["verify"]["hook"] == {"agreed": 3}


def test_the_tolerance_allows_for_approximate_functions():
    network = layers.Input(4) + layers.Dense(8, "tanh") + layers.Output(3) + layers.SoftmaxCrossEntropy()
    with trained(network, {"type": "numba", "approximate": True}) as sigma:
        assert sigma.trainer("trainer").session.state.memory["verify"]["hook"] == {"agreed": 12}


def trained(network, backend, shards=1, data=(X, LABELS), interval=1):
    environment = Environment("verified")
    trainer = environment.create_trainer("trainer", data=data, batch_size=16, backend=backend)
    trainer.network, trainer.optimiser = network, optimisers.Adam(0.01)
    trainer.operator = local.LocalOperator(shards=shards, workers=min(2, shards))
    trainer.hooks = {"verify": hooks.Verify(every=f"{interval} iterations")}
    trainer.metrics = {"accuracy": "accuracy"}
    trainer.fit(epochs=3)
    return environment


# -- faults ------------------------------------------------------------------------------------------------------------
def classifier():
    return layers.Input(4) + layers.Dense(8, "tanh") + layers.Output(3) + layers.SoftmaxCrossEntropy()


@pytest.fixture
def wrong_tangent(monkeypatch):
    """Make the compiled backend's hyperbolic tangents one per cent too large."""
    right = numba.SCALARS["tanh"]
    wrong = lambda node, x: f"({right.text(node, x)} * {numba.literal(1.01, node.dtype)})"  # noqa: E731
    monkeypatch.setitem(numba.SCALARS, "tanh", evolve(right, text=wrong))


@pytest.mark.parametrize(("shards", "rows"), [(1, 16), (3, 6)])
def test_a_wrong_function_of_the_compiled_backend_is_named(wrong_tangent, shards, rows):
    with pytest.raises(SigmaTrainingError) as raised:
        trained(classifier(), "numba", shards)
    text = str(raised.value)
    assert "iteration 1 differs from the reference: " in text
    assert f"The first wrong op is tanh(float32[{rows}, 8]) -> float32[{rows}, 8]" in text
    assert "near network.layers.1-dense.biases" in text


@pytest.mark.parametrize("name", ["verify", "verify-first"])
def test_a_hook_of_the_same_name_is_refused(sigma, name):
    code, _, err = sigma("run", "xor", *settings(3, verify="1 epoch"), "--set", f"hooks.{name}.type=loss")
    assert code == 2
    assert f"run.verify: there is a hook '{name}' already. Rename it, or leave verify out." in err


@pytest.mark.parametrize(("interval", "told"), [("after 1 iteration", 1), ("1 iteration", 1), ("3 iterations", 2)])
def test_the_first_iteration_is_verified_once(sigma, interval, told):
    given = [word for word in settings(5, verify=interval) if word not in ("--json", "--quiet")]
    code, out, err = sigma("run", "xor", *given)
    assert code == 0, err
    assert (out + err).count("verified: iteration 1 agrees with the reference") == 1
    assert (out + err).count("verified: ") == told


def test_an_invalid_interval_is_refused(sigma):
    code, _, err = sigma("check", "xor", "--set", "run.verify=1 epok")
    assert (code, "run.verify: '1 epok': the unit must be" in err) == (2, True)
    for interval, scale in (("start", "start"), ("10 seconds", "second")):
        code, _, err = sigma("check", "xor", "--set", f"run.verify={interval}")
        assert code == 2
        assert f"run.verify: cannot be every {scale}. Use iterations, epochs or samples." in err
        assert "hooks." not in err


@pytest.fixture
def later(monkeypatch):
    """Let numpy programs with a state go wrong from a call on, whose number is put into the list that is returned."""
    right, calls, first = numpy_program.PlannedProgram.__call__, [], []

    def perhaps_wrong(self, *arrays):
        results = right(self, *arrays)
        calls.extend([1] if self.donate and first else [])
        if self.donate and first and len(calls) >= first[0]:
            results[0][...] *= 1.01
        return results

    monkeypatch.setattr(numpy_program.PlannedProgram, "__call__", perhaps_wrong)
    return first


def test_a_run_ended_by_verify_resumes_from_the_last_correct_checkpoint(sigma, later):
    """A run that saves as often as it verifies saves no wrong state."""
    whole = json.loads(sigma("run", "xor", *settings(20, backend="numpy"))[1])
    saving = ["--set", "hooks.saving={ type = 'checkpoint', every = '3 epochs' }"]
    later.append(4 * whole["iterations"] // 20)
    code, _, err = sigma("run", "xor", *settings(20, backend="numpy", verify="3 epochs"), *saving)
    assert code not in (0, 2)
    assert f"iteration {6 * whole['iterations'] // 20} differs from the reference: network.layers." in err
    assert "The op cannot be located" in err
    later.clear()
    code, out, err = sigma("resume", sorted(Path("runs").glob("xor-*"))[-1], "--json", "--quiet")
    assert code == 0, err
    assert json.loads(out)["parameters_sha256"] == whole["parameters_sha256"]


def test_a_verified_run_resumes_and_replays_to_the_bits_of_an_unverified_one(sigma):
    whole = json.loads(sigma("run", "xor", *settings(20))[1])
    folder = json.loads(sigma("run", "xor", *settings(10, verify="3 epochs"))[1])["folder"]
    code, out, err = sigma("resume", folder, *settings(20))
    assert code == 0, err
    assert json.loads(out)["parameters_sha256"] == whole["parameters_sha256"]
    code, _, err = sigma("replay", folder, "--quiet")
    assert code == 0, err


def test_the_first_iteration_after_a_resume_can_be_verified(sigma):
    done = json.loads(sigma("run", "xor", *settings(10))[1])
    again = f"hooks.again={{type='verify', every='after {done['iterations'] + 1} iterations'}}"
    code, out, err = sigma("resume", done["folder"], *settings(20), "--set", again)
    assert code == 0, err
    newest = Path(done["folder"], "checkpoints", "trainer", str(json.loads(out)["iterations"]), "manifest.json")
    assert json.loads(newest.read_text())["values"]["hooks"]["again"]["hook"] == {"agreed": 1}


def test_verification_can_be_enabled_and_configured_on_resume(sigma):
    folder = json.loads(sigma("run", "xor", *settings(5))[1])["folder"]
    code, _, err = sigma("resume", folder, *settings(10, verify="2 epochs"))
    assert code == 0, err
    assert 'verify = "every 2 epochs"' in Path(folder, "config.toml").read_text()


def test_the_verify_setting_can_be_written_as_hooks():
    with Environment("verified") as sigma:
        trainer = sigma.create_trainer("trainer", data=(X, LABELS), network=classifier(), optimiser="adam")
        trainer.hooks = {
            "first": {"type": "verify", "every": str(after(1, "iteration"))},
            "often": {"type": "verify", "every": "1 epoch", "tolerance": 100.0},
        }
        trainer.fit(epochs=2)
        memory = trainer.session.state.memory
    assert [memory[name]["hook"] for name in ("first", "often")] == [{"agreed": 1}, {"agreed": 2}]
