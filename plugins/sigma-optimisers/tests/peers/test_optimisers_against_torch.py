"""Every optimiser, transform and schedule against PyTorch: 100 steps from the same values, in float64."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_kernel import functions as f  # noqa: E402
from sigma_kernel.contracts import live_settings  # noqa: E402
from sigma_kernel.graph import (  # noqa: E402
    Graph,
    interpret,
    numpy_namespace,
    symbol,
)
from sigma_optimisers import (  # noqa: E402
    L1,
    L2,
    LBFGS,
    AccumulateGradients,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Average,
    Clip,
    ClipGlobalNorm,
    ClipNorm,
    ClipValue,
    ConstantFactor,
    Cosine,
    Cyclic,
    Exponential,
    GradientDescent,
    MaxNorm,
    Momentum,
    Muon,
    NAdam,
    Nesterov,
    OneCycle,
    Product,
    RAdam,
    RMSprop,
    SpectralNorm,
    StepDecay,
    WarmUp,
)  # fmt: skip
from sigma_testing import START, Trial  # noqa: E402

STEPS, TOLERANCE = 100, 1e-9
optim, clip = torch.optim, torch.nn.utils
sched = optim.lr_scheduler

FAST = {"lr": 0.02, "betas": (0.6, 0.5)}
OPTIMISERS = {
    "gradient_descent": (GradientDescent(), optim.SGD, {}),
    "gradient_descent fast": (GradientDescent(0.3), optim.SGD, {"lr": 0.3}),
    "momentum": (Momentum(), optim.SGD, {"momentum": 0.9}),
    "momentum fast": (Momentum(0.05, 0.7), optim.SGD, {"lr": 0.05, "momentum": 0.7}),
    "nesterov": (Nesterov(), optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "nesterov fast": (Nesterov(0.05, 0.7), optim.SGD, {"lr": 0.05, "momentum": 0.7, "nesterov": True}),
    "adagrad": (Adagrad(), optim.Adagrad, {}),
    "adagrad filled": (
        Adagrad(0.1, 0.1, 0.5),
        optim.Adagrad,
        {"lr": 0.1, "eps": 0.1, "initial_accumulator_value": 0.5},
    ),
    "adadelta": (Adadelta(), optim.Adadelta, {}),
    "adadelta slow": (Adadelta(0.5, 0.7, 1e-3), optim.Adadelta, {"lr": 0.5, "rho": 0.7, "eps": 1e-3}),
    "rmsprop": (RMSprop(), optim.RMSprop, {}),
    "rmsprop slow": (RMSprop(0.003, 0.8, 1e-3), optim.RMSprop, {"lr": 0.003, "alpha": 0.8, "eps": 1e-3}),
    "adam": (Adam(), optim.Adam, {}),
    "adam fast": (Adam(0.02, 0.6, 0.95, 1e-3), optim.Adam, {"lr": 0.02, "betas": (0.6, 0.95), "eps": 1e-3}),
    "adamw": (AdamW(), optim.AdamW, {}),
    "adamw decaying": (AdamW(0.02, weight_decay=0.4), optim.AdamW, {"lr": 0.02, "weight_decay": 0.4}),
    "adam with amsgrad": (Adam(0.02, 0.6, 0.5, amsgrad=True), optim.Adam, {**FAST, "amsgrad": True}),
    "adamw with amsgrad": (AdamW(0.02, 0.6, 0.5, amsgrad=True), optim.AdamW, {**FAST, "amsgrad": True}),
    "adamax": (Adamax(), optim.Adamax, {}),
    "adamax fast": (Adamax(0.02, 0.6, 0.5, 1e-3), optim.Adamax, {**FAST, "eps": 1e-3}),
    "nadam": (NAdam(), optim.NAdam, {}),
    "nadam fast": (NAdam(0.02, 0.6, 0.5, 1e-3, 0.3), optim.NAdam, {**FAST, "eps": 1e-3, "momentum_decay": 0.3}),
    "radam": (RAdam(), optim.RAdam, {}),
    "radam fast": (
        RAdam(0.02, 0.6, 0.9, 1e-3),
        optim.RAdam,
        {"lr": 0.02, "betas": (0.6, 0.9), "eps": 1e-3},
    ),
    "radam with a short average": (RAdam(0.02, 0.6, 0.5), optim.RAdam, {"lr": 0.02, "betas": (0.6, 0.5)}),
    "adafactor": (Adafactor(), optim.Adafactor, {}),
    "adafactor fast": (
        Adafactor(0.005, 0.5, 0.7, 1.2, 0.05),
        optim.Adafactor,
        {"lr": 0.005, "beta2_decay": -0.5, "eps": (None, 0.7), "d": 1.2, "weight_decay": 0.05},
    ),
}
FLOAT32 = 1e-3  # difference after 100 steps: rounding of 1e-7 a step, amplified where a small moment divides
MUON = {"adjust_lr_fn": "match_rms_adamw"}
MUONS = {
    "muon": (Muon(), MUON),
    "muon fast": (Muon(0.01, momentum=0.7, weight_decay=0.3, steps=3, nesterov=False),
                  {**MUON, "lr": 0.01, "momentum": 0.7, "weight_decay": 0.3, "ns_steps": 3, "nesterov": False}),
    "muon with original sizes": (Muon(0.02, scale="original"), {"lr": 0.02}),
}  # fmt: skip


def small_network(parameters):
    """Return the network of sigma_testing.optimisers.small_network in PyTorch."""
    hidden = torch.tanh(parameters["0-dense.weights"] + parameters["0-dense.biases"])
    return ((hidden @ parameters["1-dense.weights"] - 0.5) ** 2).mean()


def torch_steps(make, settings, change=lambda parameters: None, schedule=None, dtype=torch.float64):
    """Train in PyTorch; return the losses and the parameters."""
    parameters = {address: torch.tensor(value, requires_grad=True, dtype=dtype) for address, value in START.items()}
    optimiser = make(parameters.values(), **settings)
    scheduler = schedule(optimiser) if schedule else None
    losses = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = small_network(parameters)
        loss.backward()
        change(parameters)
        optimiser.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    return losses, {address: value.detach().numpy() for address, value in parameters.items()}


def cycle(optimiser, rises=0.3, **settings):
    """PyTorch counts the steps of a cycle with its last one, and the rise from one step before it."""
    settings = {"total_steps": STEPS + 1, "pct_start": (STEPS * rises + 1) / (STEPS + 1), **settings}
    return sched.OneCycleLR(optimiser, 0.2, cycle_momentum=False, **settings)


def triangles(optimiser, **settings):
    return sched.CyclicLR(optimiser, 0.04, 0.2, step_size_up=20, cycle_momentum=False, **settings)


def assert_same(optimiser, theirs, bound=TOLERANCE, dtype="float64"):
    trial = Trial(optimiser, iterations_per_epoch=10, dtype=dtype)
    losses, values = theirs
    np.testing.assert_allclose(trial.run(STEPS), losses, rtol=bound, atol=bound)
    for address, value in values.items():
        np.testing.assert_allclose(trial.values[address], value, rtol=bound, atol=bound)
        assert not np.allclose(value, START[address], rtol=1e-4, atol=1e-4)  # the parameters have changed


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_agrees_over_100_steps(name):
    optimiser, make, settings = OPTIMISERS[name]
    assert_same(optimiser, torch_steps(make, settings))


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_agrees_in_float32(name):
    """Rounding decides along directions that are flat: by 3e-3 on processors that round in another order."""
    optimiser, make, settings = OPTIMISERS[name]
    bound = 5 * FLOAT32 if name == "radam fast" else FLOAT32
    assert_same(optimiser, torch_steps(make, settings, dtype=torch.float32), bound, "float32")


@pytest.mark.parametrize("name", MUONS)
def test_muon_agrees_over_100_steps(name, monkeypatch):
    """In PyTorch, a matrix is (outputs, inputs), AdamW is another optimiser, and rounding to bfloat16 is left out."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda x: x.clone())
    optimiser, settings = MUONS[name]
    trial, values = Trial(optimiser), {address: torch.tensor(value) for address, value in START.items()}
    for address, value in values.items():
        values[address] = (value.T.contiguous() if value.ndim == 2 else value).requires_grad_()
    shared = {"lr": optimiser.learning_rate, "weight_decay": optimiser.weight_decay}
    optimisers = (
        optim.Muon([value for value in values.values() if value.ndim == 2], **settings),
        optim.AdamW([value for value in values.values() if value.ndim < 2], **shared),
    )
    for loss in trial.run(STEPS):
        for one in optimisers:
            one.zero_grad()
        theirs = small_network({a: value.T if value.ndim == 2 else value for a, value in values.items()})
        assert loss == pytest.approx(theirs.item(), rel=TOLERANCE, abs=TOLERANCE)
        theirs.backward()
        for one in optimisers:
            one.step()
    for address, value in values.items():
        found = value.detach().numpy()
        np.testing.assert_allclose(trial.values[address], found.T, rtol=TOLERANCE, atol=TOLERANCE)
        assert not np.allclose(found.T, START[address], rtol=1e-4, atol=1e-4)


def test_accumulated_gradients_agree_with_those_of_torch():
    """PyTorch adds gradients up until they are set to zero; each loss is divided by the number of batches."""
    values = {address: torch.tensor(value, requires_grad=True) for address, value in START.items()}
    theirs, trial = optim.AdamW(values.values(), 0.02), Trial(AdamW(0.02, transforms={"four": AccumulateGradients(4)}))
    for step, loss in enumerate(trial.run(STEPS), 1):
        found = small_network(values)
        assert loss == pytest.approx(found.item(), rel=TOLERANCE)
        (found / 4).backward()
        if step % 4 == 0:
            theirs.step()
            theirs.zero_grad()
    for address, value in values.items():
        np.testing.assert_allclose(trial.values[address], value.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def each(action):
    def change(parameters):
        for value in parameters.values():
            action(value)

    return change


def penalise(value):
    value.grad += 0.02 * torch.sign(value.detach())


TRANSFORMS = {
    "clip_value": (ClipValue(0.01), each(lambda p: clip.clip_grad_value_(p, 0.01))),
    "clip_norm": (ClipNorm(0.05), each(lambda p: clip.clip_grad_norm_(p, 0.05))),
    "clip_global_norm": (ClipGlobalNorm(0.05), lambda parameters: clip.clip_grad_norm_(parameters.values(), 0.05)),
    "l1": (L1(0.02), each(penalise)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_agrees_over_100_steps(name):
    transform, change = TRANSFORMS[name]
    theirs = torch_steps(optim.SGD, {"lr": 0.2, "momentum": 0.5}, change)
    assert_same(Momentum(0.2, 0.5, transforms={"it": transform}), theirs)


@pytest.mark.parametrize(("optimiser", "make"), [(Momentum, optim.SGD), (Adam, optim.Adam), (Adagrad, optim.Adagrad)])
def test_l2_equals_the_weight_decay_of_torch(optimiser, make):
    momentum = {"momentum": 0.9} if make is optim.SGD else {}
    theirs = torch_steps(make, {"lr": 0.02, "weight_decay": 0.05, **momentum})
    assert_same(optimiser(0.02, transforms={"decay": L2(0.05)}), theirs)


SCHEDULES = {  # one step of PyTorch's schedulers is an iteration, of which an epoch has 10 here
    "constant": (ConstantFactor(0.5), lambda o: sched.LambdaLR(o, lambda epoch: 0.5)),
    "step": (StepDecay("3 epochs", 0.5), lambda o: sched.StepLR(o, 30, 0.5)),
    "exponential": (Exponential("1 epoch", 0.8), lambda o: sched.ExponentialLR(o, 0.8**0.1)),
    "cosine": (Cosine("10 epochs"), lambda o: sched.CosineAnnealingLR(o, 100)),
    "cosine with a floor": (Cosine("10 epochs", 0.1), lambda o: sched.CosineAnnealingLR(o, 100, eta_min=0.02)),
    "warm_up": (WarmUp("4 epochs", 0.25), lambda o: sched.LinearLR(o, 0.25, 1.0, 40)),
    "warm_up, then": (
        WarmUp("4 epochs", 0.25, then=Exponential("1 epoch", 0.8)),
        lambda o: sched.SequentialLR(o, [sched.LinearLR(o, 0.25, 1.0, 40), sched.ExponentialLR(o, 0.8**0.1)], [40]),
    ),
    "product": (
        Product([WarmUp("4 epochs", 0.25), StepDecay("3 epochs", 0.5)]),
        lambda o: sched.ChainedScheduler([sched.LinearLR(o, 0.25, 1.0, 40), sched.StepLR(o, 30, 0.5)]),
    ),
    "one_cycle": (OneCycle("10 epochs"), cycle),
    "one_cycle in lines": (
        OneCycle("10 epochs", 0.45, 0.2, 0.05, "linear"),
        lambda o: cycle(o, 0.45, div_factor=5, final_div_factor=4, anneal_strategy="linear"),
    ),
    "cyclic": (Cyclic("2 epochs", low=0.2), triangles),
    "cyclic with a long fall": (Cyclic("2 epochs", "3 epochs", 0.2), lambda o: triangles(o, step_size_down=30)),
    "cyclic and shrinking": (Cyclic("2 epochs", low=0.2, shrink=0.5), lambda o: triangles(o, mode="triangular2")),
}


def modified(modifier, value):
    parameter = symbol(value.shape, str(value.dtype), "parameter")
    settings = {name: symbol((), "float64", name) for name in live_settings(modifier)}
    graph = Graph((parameter, *settings.values()), (modifier.modify(parameter, settings),))
    (result,) = interpret(graph, numpy_namespace())(value, *(np.array(getattr(modifier, name)) for name in settings))
    return result


def rosenbrock(x, narrow):
    first, second = narrow(x, 0, 0, 5), narrow(x, 0, 1, 5)
    return (100.0 * (second - first**2) ** 2 + (1.0 - first) ** 2).sum()


@pytest.mark.parametrize("history", [3, 10])
def test_l_bfgs_agrees_step_by_step(history):
    """As long as nothing has converged: rounding grows along a curved valley."""
    start = np.array([-1.2, 1.0, -1.2, 1.0, -1.2, 1.0])
    trial = Trial(
        LBFGS(history=history, evaluations=25),
        lambda p: rosenbrock(p["x"], lambda x, axis, at, size: f.narrow(x, axis, at, at + size)),
        {"x": start},
    )
    value = torch.tensor(start, requires_grad=True)
    theirs = optim.LBFGS(
        [value], max_iter=1, max_eval=25, history_size=history, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def again():
        theirs.zero_grad()
        loss = rosenbrock(value, torch.narrow)
        loss.backward()
        return loss

    for loss in trial.run(25):
        assert loss == pytest.approx(theirs.step(again).item(), rel=TOLERANCE)
    np.testing.assert_allclose(trial.values["x"], value.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_l_bfgs_agrees_over_100_steps_of_a_network():
    values = {address: torch.tensor(value, requires_grad=True) for address, value in START.items()}
    theirs = optim.LBFGS(
        list(values.values()), max_iter=1, max_eval=25, history_size=10, tolerance_change=1e-12,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def penalised(p, square):
        return small_network(p) + 0.01 * sum(square(value).sum() for value in p.values())

    def again():
        theirs.zero_grad()
        loss = penalised(values, torch.square)
        loss.backward()
        return loss

    ours = Trial(GradientDescent()).function
    trial = Trial(
        LBFGS(history=10, evaluations=25),
        lambda p: ours(p) + 0.01 * sum(f.sum(f.square(value)) for value in p.values()),
    )
    for loss in trial.run(STEPS):
        assert loss == pytest.approx(theirs.step(again).item(), rel=TOLERANCE)
    for address, value in values.items():  # both stop at a slope of 1e-7; the curvature is 0.02
        np.testing.assert_allclose(trial.values[address], value.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("start", [[-1.2, 1.0], [-1.2, 1.0] * 3, [3.0, -2.0, 0.5, 1.5]])
def test_l_bfgs_takes_as_many_steps_as_that_of_scipy(start):
    scipy = pytest.importorskip("scipy.optimize")
    theirs = scipy.minimize(
        scipy.rosen, start, jac=scipy.rosen_der, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-6}
    )

    def loss(p):
        first, second = f.narrow(p["x"], 0, 0, len(start) - 1), f.narrow(p["x"], 0, 1, len(start))
        return f.sum(100.0 * f.square(second - first * first) + f.square(1.0 - first))

    trial = Trial(LBFGS(), loss, {"x": np.array(start)})
    losses = trial.run(2 * theirs.nit)
    steps = next(number for number, found in enumerate(losses) if found <= max(theirs.fun, 1e-12))
    assert steps <= 1.25 * theirs.nit + 2


def test_an_average_agrees_with_that_of_torch():
    """In PyTorch, the average is updated after each step."""
    module = torch.nn.ParameterDict({a.replace(".", "_"): torch.tensor(value) for a, value in START.items()})
    averaged = torch.optim.swa_utils.AveragedModel(module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    theirs, trial = optim.Adam(module.parameters(), 0.02), Trial(Adam(0.02, modifiers={"slow": Average(0.9)}))
    for _ in range(STEPS):
        theirs.zero_grad()
        small_network({a: module[a.replace(".", "_")] for a in START}).backward()
        theirs.step()
        averaged.update_parameters(module)
    trial.run(STEPS)
    for address, value in trial.values.items():
        mean = averaged.module[address.replace(".", "_")].detach().numpy()
        np.testing.assert_allclose(trial.slots[address, "modifiers.slow.weights"], mean, rtol=TOLERANCE, atol=TOLERANCE)
        assert not np.allclose(mean, value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "iterations"), [((4, 3), 1), ((3, 5), 3), ((1, 4), 1), ((4, 2, 3, 3), 2)])
def test_a_spectral_norm_agrees_with_that_of_torch(shape, iterations):
    """Matrices that move from step to step; PyTorch iterates at once, so it is given the vector of before."""
    draw, dense = np.random.default_rng(1), len(shape) == 2
    optimiser = GradientDescent(
        1.0, modifiers={"even": SpectralNorm(1.0, axis=-1 if dense else 0, iterations=iterations)}
    )
    trial = Trial(optimiser, lambda p: f.sum(p["x"]) * 0.01, {"x": draw.normal(size=shape)})
    trial.run(1)
    module = torch.nn.Module()
    for _ in range(20):
        moved, vector = trial.values["x"] - 0.01, trial.slots["x", "modifiers.even.vector"]
        module.weight = torch.nn.Parameter(torch.tensor(moved.T.copy() if dense else moved))
        normed = torch.nn.utils.parametrizations.spectral_norm(module, n_power_iterations=iterations).train()
        normed.parametrizations.weight[0]._v.copy_(torch.tensor(vector))
        wanted = normed.weight.detach().numpy()
        torch.nn.utils.parametrize.remove_parametrizations(module, "weight")
        trial.run(1)
        found = trial.values["x"].T if dense else trial.values["x"]
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE)


def test_parameter_modifiers_agree_with_torch():
    weights = np.random.default_rng(3).normal(size=(5, 4)) * [0.1, 1.0, 2.0, 3.0]
    theirs = torch.tensor(weights)
    shortened = torch.renorm(theirs, 2, 1, 2.5).numpy()
    np.testing.assert_allclose(modified(MaxNorm(2.5), weights), shortened, rtol=1e-7)
    assert not np.allclose(shortened, weights)
    np.testing.assert_allclose(
        modified(MaxNorm(1.0, axis=0), weights), torch.renorm(theirs, 2, 0, 1.0).numpy(), rtol=1e-6
    )
    np.testing.assert_array_equal(modified(Clip(-0.5, 0.25), weights), torch.clamp(theirs, -0.5, 0.25).numpy())


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_agrees_over_100_steps(name):
    schedule, theirs = SCHEDULES[name]
    settings = {"lr": 0.2, "momentum": 0.5}
    assert_same(
        Momentum(0.2, 0.5, schedules={"learning_rate": schedule}), torch_steps(optim.SGD, settings, schedule=theirs)
    )
