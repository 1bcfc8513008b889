"""Give random data again in random ways: each ends in the same numbers, or in a refusal by name.

::

    python tests/reliability/given_again.py 2000 [SEED]

Each round trains a small network on a random table: a file, a frame of pandas or polars, a pair of frames, or arrays.
The data are then given again: as they were, with columns in another order, with columns or classes of other names, in
another notation or type, with rows in another order, with more or fewer rows, with a column more or less, or with one
value changed.  They are evaluated, take the place of the run's file, or training is resumed with them.  The right
numbers are those that NumPy computes from the rows and the parameters, by a formula of its own.  Prints one JSON
document; exits with an error at the first round whose numbers differ, or that is refused, and not by name.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from attrs import evolve, field, frozen

from sigma_data import Csv, Frame
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaError
from sigma_run import Trained, load

KINDS = ("file", "frame", "polars", "pair", "arrays")
PURPOSES = ("evaluate", "run", "resume")
Parameters = Mapping[str, np.ndarray]
NUMBERED = "have changed since the training"  # rows that are not those of the run
EPOCHS = 2


@frozen
class Given:
    """A table, the name of what is predicted, and how it is handed over."""

    table: pd.DataFrame
    encode: tuple[str, ...]
    classes: bool
    kind: str
    notation: Callable[[pd.DataFrame], pd.DataFrame] = field(default=lambda table: table)

    def data(self, path: Path) -> Any:
        """Return the data as a trainer takes them; a file is written."""
        table = self.notation(self.table)
        if self.kind == "file":
            table.to_csv(path, index=False)
            return Csv(path, "y", encode=self.encode, split={"training": 1.0})
        if self.kind in ("pair", "arrays"):
            inputs = table.drop(columns="y")
            for name in self.encode:
                inputs[name] = inputs[name].astype("category")
            return (inputs if self.kind == "pair" else inputs.to_numpy()), table["y"]
        found: Any = pl.DataFrame(table) if self.kind == "polars" else table
        return Frame(found, "y", encode=self.encode)


def drawn(draw: random.Random) -> Given:
    """Return a random table: numbers on several scales, perhaps categories, and a target of some type."""
    kind, rows = draw.choice(KINDS), draw.randint(12, 40)
    names = draw.sample(["size", "age", "Age", "x 1", "10", "weight", "länge"], draw.randint(2, 4))
    scales = {name: draw.choice([1, 9]) for name in names}
    table: dict[str, list[Any]] = {  # of numbers that 32 bits hold, as which files are read
        name: [float(np.float32(draw.gauss(0, scale))) for _ in range(rows)] for name, scale in scales.items()
    }
    encode = ("sort",) if kind != "arrays" and draw.random() < 0.5 else ()
    for name in encode:
        table[name] = [*"rgb", *draw.choices("rgb", k=rows - 3)]
    whole = [3, 7] if kind in ("file", "frame", "polars") else [0, 1]  # of a table they are labels, of arrays indices
    target: list[Any] = draw.choice([["u", "v"], ["u", "v", "w"], whole, [True, False], []])
    numbers = [float(np.float32(draw.gauss(0, 1))) for _ in range(rows if not target else 0)]
    table["y"] = [*target, *draw.choices(target, k=rows - len(target))] if target else numbers
    order = draw.sample([*table], len(table)) if kind != "arrays" else [*table]
    return Given(pd.DataFrame(table)[order], encode, bool(target), kind)


# -- ways of giving it again -------------------------------------------------------------------------------------------
Way = tuple[Given, str]  # and a part of the message if that is refused; for other purposes than evaluate, of new rows


def as_it_was(given: Given, draw: random.Random) -> Way:
    return given, ""


def reordered(given: Given, draw: random.Random) -> Way:
    order = draw.sample([*given.table], len(given.table.columns))
    return evolve(given, table=given.table[order]), ""


def retyped(given: Given, draw: random.Random) -> Way:
    """Write numbers in another notation, or hold them in other types; give categories a type of their own."""
    if given.kind == "file":
        return evolve(
            given, notation=lambda table: table.map(lambda x: f"{x:+.12e}" if isinstance(x, float) else x)
        ), ""
    kinds = {name: "object" if name in given.encode else "Float64" for name in given.table if name != "y"}
    pandas = given.kind in ("frame", "pair")
    return evolve(given, notation=lambda table: table.astype(kinds) if pandas else table), ""


def another_library(given: Given, draw: random.Random) -> Way:
    others = ("file", "frame", "polars", "pair") if given.kind != "arrays" else ("arrays",)
    return evolve(given, kind=draw.choice(others)), ""


def shuffled(given: Given, draw: random.Random) -> Way:
    order = draw.sample(range(len(given.table)), len(given.table))
    return evolve(given, table=given.table.iloc[order].reset_index(drop=True)), NUMBERED


def extended(given: Given, draw: random.Random) -> Way:
    more = given.table.iloc[draw.choices(range(len(given.table)), k=draw.randint(1, 9))]
    return evolve(given, table=pd.concat([given.table, more], ignore_index=True)), NUMBERED


def subset(given: Given, draw: random.Random) -> Way:
    some = sorted(draw.sample(range(len(given.table)), draw.randint(3, len(given.table) - 1)))
    return evolve(given, table=given.table.iloc[some].reset_index(drop=True)), NUMBERED


def one_value(given: Given, draw: random.Random) -> Way:
    name = draw.choice([name for name in given.table if name not in ("y", *given.encode)])
    table = given.table.copy()
    table.loc[draw.randrange(len(table)), name] += 0.5
    return evolve(given, table=table), NUMBERED


def renamed(given: Given, draw: random.Random) -> Way:
    name = draw.choice([name for name in given.table if name != "y"])
    encode = tuple("other" if one == name else one for one in given.encode)
    return evolve(given, table=given.table.rename(columns={name: "other"}), encode=encode), repr(name)


def one_less(given: Given, draw: random.Random) -> Way:
    name = draw.choice([name for name in given.table if name != "y"])
    encode = tuple(one for one in given.encode if one != name)
    return evolve(given, table=given.table.drop(columns=name), encode=encode), repr(name)


def one_more(given: Given, draw: random.Random) -> Way:
    table = given.table.copy()
    table.insert(draw.randint(0, len(table.columns)), "more", 1.5 + table.index)
    return evolve(given, table=table), "'more'"


def another_class(given: Given, draw: random.Random) -> Way:
    table = given.table.copy()
    table["y"] = table["y"].astype(object).replace({table["y"].iloc[0]: "new"}).astype(str)
    return evolve(given, table=table), "class"


def another_category(given: Given, draw: random.Random) -> Way:
    return evolve(given, table=given.table.replace({"sort": {"r": "new"}})), "'new'"


ANYTHING = (as_it_was, retyped, another_library, shuffled, extended, subset, one_value)
NAMED = (reordered, renamed, one_less, one_more)  # what has names


def ways(given: Given) -> list[Callable[[Given, random.Random], Way]]:
    """Return the ways in which data of this kind can be given again."""
    named = NAMED if given.kind != "arrays" else ()
    return [*ANYTHING, *named, *([another_class] * given.classes), *([another_category] * bool(given.encode))]


# -- the numbers -------------------------------------------------------------------------------------------------------
def loss(trained: Given, rows: Given, parameters: Mapping[str, np.ndarray]) -> float:
    """Return the mean cost of rows, in float64: one linear layer on columns that the training rows standardise."""
    first, values = (_columns(one.table, trained) for one in (trained, rows))
    weights, bias = (np.asarray(parameters[f"network.layers.1-output.{name}"], float) for name in ("weights", "biases"))
    found = (values - first.mean(axis=0)) / first.std(axis=0) @ weights + bias
    if not trained.classes:
        return float(np.mean((found[:, 0] - np.asarray(rows.table["y"], float)) ** 2))
    chosen = [sorted(set(trained.table["y"].tolist())).index(label) for label in rows.table["y"].tolist()]
    greatest = found.max(axis=1)
    total = greatest + np.log(np.exp(found - greatest[:, None]).sum(axis=1))
    return float(np.mean(total - found[range(len(found)), chosen]))


def _columns(table: pd.DataFrame, trained: Given) -> np.ndarray:
    parts = [
        [np.asarray(table[name] == sort, float) for sort in "bgr"] if name in trained.encode else [table[name]]
        for name in trained.table
        if name != "y"
    ]
    return np.column_stack([np.asarray(column, float) for part in parts for column in part])


# -- a round -----------------------------------------------------------------------------------------------------------
def environment(given: Given, data: Any, epochs: int, units: int) -> Environment:
    """Return an environment with a trainer for a table."""
    width = len(given.table.columns) - 1 + 2 * len(given.encode)
    cost = "softmax_cross_entropy()" if given.classes else "squared_difference()"
    made = Environment("it", folder="runs", control=False)
    made.create_trainer(
        data=data, network=f"input({width}) + output({units}) + {cost}", preprocessors=["standardise"], batch_size=10,
        optimiser={"type": "adam", "learning_rate": 0.1}, epochs=epochs, backend="numpy",
    )  # fmt: skip
    return made


def trained(given: Given, epochs: int = EPOCHS) -> Trained:
    """Return the network that was trained on a table, in a run folder of its own."""
    units = len(set(given.table["y"].tolist())) if given.classes else 1
    with environment(given, given.data(Path("t.csv")), epochs, units) as made:
        made.run(progress=False)
        assert made.run_folder is not None
        return load(made.run_folder)


def outcome(model: Trained, purpose: str, given: Given) -> Parameters | float | SigmaError:
    """Return what comes of data that are given again, or the error if they are refused."""
    try:
        return _used(model, purpose, given)
    except SigmaError as error:
        return error


def _used(model: Trained, purpose: str, given: Given) -> Parameters | float:
    """Return the loss of data, or the parameters after training went on with them."""
    if purpose == "evaluate":
        return model.evaluate(given.data(Path("again.csv")))["loss"]
    data, run = given.data(Path("t.csv")), model.path.parents[2]
    if purpose == "run":
        return load(run).evaluate("training")["loss"]
    units = len(model.parameters()["network.layers.1-output.biases"])  # also if other rows have fewer classes
    with environment(given, data, EPOCHS + 1, units) as made:
        made.resume(run, log=lambda text: None)
        made.run(progress=False)
        return {name: np.asarray(value) for name, value in made.trainer("trainer").parameters().items()}


def agrees(found: Parameters | float, first: Given, again: Given, model: Trained) -> bool:
    """Return whether the numbers are right: the loss of the formula, or the bits of an uninterrupted run."""
    if isinstance(found, float):
        wanted = loss(first, again, model.parameters())
        return abs(found - wanted) <= 1e-5 * (1 + abs(wanted))
    whole = trained(first, EPOCHS + 1).parameters()
    return all(found[name].tobytes() == np.asarray(value).tobytes() for name, value in whole.items())


def judged(draw: random.Random) -> tuple[str, str]:
    """Return what was tried in one round, and how it ended; AssertionError if that is wrong."""
    first = drawn(draw)
    model, purpose, way = trained(first), draw.choice(PURPOSES), draw.choice(ways(first))
    again, words = way(first, draw)
    if purpose == "run" and not first.kind == again.kind == "file":
        purpose = "evaluate"  # rows that were given in Python are saved with the run
    numbered = purpose != "evaluate" and words == NUMBERED
    right = "refused" if numbered or words not in ("", NUMBERED) else "the same numbers"
    what = f"{first.kind} {way.__name__} {purpose}"
    found = outcome(model, purpose, again)
    if isinstance(found, SigmaError):
        assert right == "refused", f"{what}: refused, and nothing is wrong: {found}"
        assert words in str(found), f"{what}: refused in other words than {words}: {found}"
        return purpose, "refused by name"
    assert right != "refused", f"{what}: not refused"
    assert agrees(found, first, again, model), f"{what}: other numbers: {found}"
    return purpose, right


def main(rounds: int, seed: int = 0) -> None:
    """Try random pairs, and print how they ended."""
    found = Counter[str]()
    for number in range(rounds):
        with TemporaryDirectory() as folder, chdir(folder):
            try:
                found[": ".join(judged(random.Random(f"{seed} {number}")))] += 1
            except Exception as error:
                raise SystemExit(f"round {number} of seed {seed}: {error}") from error
    print(json.dumps({"rounds": rounds, **dict(sorted(found.items()))}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
