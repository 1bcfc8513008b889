"""Propose the values of a trial: the points of a grid in order, or by Optuna's samplers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import islice, product
from typing import Any

import numpy as np

from sigma_search.protocol import Outcome
from sigma_search.results import inline
from sigma_search.settings import Dimension, SearchSettings

VERSION = version("optuna")
STATES = {"finished": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}
Values = Mapping[str, Any]


def propose(
    settings: SearchSettings,
    seed: int,
    number: int,
    known: Sequence[tuple[Values, Outcome]],
    training: Sequence[Values],
) -> dict[str, Any]:
    """Return the values of trial ``number``, by address: a function of its arguments.

    ``known`` are the values and outcomes of earlier trials, ``training`` the values of those whose outcomes must not
    count yet.  Each trial has a sampler of its own, seeded by ``seed`` and number.
    """
    if settings.sampler == "grid":
        points = product(*(dimension.points() or () for dimension in settings.space.values()))
        return dict(zip(settings.space, next(islice(points, number, None)), strict=True))
    optuna: Any = import_module("optuna")  # takes longer than the help of the command
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # optuna calls settings of its samplers experimental
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = _make_sampler(optuna, settings.sampler, _derive_seed(seed, number))
        study = optuna.create_study(direction="maximize" if settings.maximise else "minimize", sampler=sampler)
        distributions = {address: _distribution(optuna, dimension) for address, dimension in settings.space.items()}
        for values, outcome in [*known, *((values, None) for values in training)]:
            params = {address: _param(dimension, values[address]) for address, dimension in settings.space.items()}
            study.add_trial(_describe(optuna, params, distributions, outcome))
        params = study.ask(distributions).params
    return {address: _value(dimension, params[address]) for address, dimension in settings.space.items()}


def _derive_seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def _make_sampler(optuna: Any, name: str, seed: int) -> Any:
    if name == "random":
        return optuna.samplers.RandomSampler(seed)
    return optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _distribution(optuna: Any, dimension: Dimension) -> Any:
    """Return a dimension for Optuna; of choices, their indices, as they may be of any type."""
    low, high, step = dimension.low, dimension.high, dimension.step
    if dimension.choices is not None:
        return optuna.distributions.CategoricalDistribution(range(len(dimension.choices)))
    if dimension.is_whole:
        return optuna.distributions.IntDistribution(low, high, dimension.log, 1 if step is None else step)
    return optuna.distributions.FloatDistribution(low, high, dimension.log, step)


def _describe(optuna: Any, params: Values, distributions: Mapping[str, Any], outcome: Outcome | None) -> Any:
    """Return a trial for Optuna; one without an outcome trains."""
    states = optuna.trial.TrialState
    if outcome is None:
        return optuna.trial.create_trial(state=states.RUNNING, params=params, distributions=distributions)
    return optuna.trial.create_trial(
        state=states[STATES[outcome.status]],
        value=outcome.value if outcome.status == "finished" else None,
        params=params,
        distributions=distributions,
        intermediate_values={at: value for at, _, value in outcome.values},
    )


def _value(dimension: Dimension, param: Any) -> Any:
    if dimension.choices is not None:
        return dimension.choices[param]
    return int(param) if dimension.is_whole else float(param)


def _param(dimension: Dimension, value: Any) -> Any:
    """Return a value for Optuna; texts tell choices apart that are equal but of other types, such as 1 and 1.0."""
    return value if dimension.choices is None else [*map(inline, dimension.choices)].index(inline(value))
