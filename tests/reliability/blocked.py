"""Train on tables in memory and in blocks, with settings that are drawn, and compare all that the runs compute.

python -m tests.reliability.blocked [ROUNDS] [SEED]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from attrs import frozen

from sigma_data import Tabular
from sigma_kernel import Dataset, Environment
from sigma_run import load
from sigma_testing import state_bytes

OPEN = 16  # blocks that are drawn from together
COSTS = {"number": "squared_difference()", "class": "softmax_cross_entropy()"}
TARGETS: dict[str, tuple[Any, str, dict[str, Any]]] = {  # what to predict, its kind, and settings
    "number": ("price", "number", {}),
    "words": ("kind", "class", {}),
    "whole": ("rooms", "class", {"targets": "classes"}),
    "boolean": ("garden", "class", {"targets": "classes"}),
    "several": (("price", "size"), "number", {}),
}
METRICS = {
    "number": ("mean_absolute_error", "root_mean_square_error"),
    "class": ("accuracy", "confusion_matrix", "f1"),
}
ENCODERS: dict[str, tuple[Any, ...]] = {
    "tilt": ("number", {"type": "number", "missing": "mean", "scale": "robust", "indicator": True}, "exclude"),
    "size": ({"type": "number", "scale": "quantile"}, {"type": "number", "clip": 0.1, "log": True}),
    "city": ("index", {"type": "one_hot", "least": 5}, {"type": "hashing", "size": 4}),
    "agent": ({"type": "target_mean", "folds": 3}, {"type": "index", "section": "agents"}, "exclude"),
    "sold": ("date", "exclude"),
    "floor": ({"type": "ordinal", "order": ["low", "mid", "high"]}, "one_hot"),
}
PREPROCESSORS = ("normalise", "robust", "clip", {"type": "quantile", "quantiles": 20})  # standardise adds up by block
AUGMENTATIONS = {"class": ("noise",), "number": ("noise", "mix_up")}
ITERATORS = ("minibatch", "shuffle", "sequential", "balanced")
WRITERS = {
    "parquet": lambda frame, path: frame.to_parquet(path, row_group_size=37),
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True, date_format="iso"),
}


@frozen
class Case:
    """A table, and the settings of two runs on it: those of both, and those of blocks."""

    frame: pd.DataFrame
    form: str
    kind: str
    table: dict[str, Any]
    blocks: dict[str, Any]
    trainer: dict[str, Any]

    @property
    def has_one_order(self) -> bool:
        """Return whether rows come in the order that they have in memory: of many blocks, they are drawn otherwise.

        ``mix_up`` mixes rows that are drawn together.
        """
        few = self.blocks["block_rows"] * OPEN >= len(self.frame)
        mixed = "mix_up" in self.trainer["augmentations"].values()
        return few or (self.trainer["iterator"] == "sequential" and not mixed)

    def __str__(self) -> str:
        return f"{len(self.frame)} rows, {self.form}, {self.table}, {self.blocks}, {self.trainer}"


def draw_frame(draws: np.random.Generator, rows: int) -> pd.DataFrame:
    """Return a table with columns of all kinds, some cells missing."""
    frame = pd.DataFrame(
        {
            "name": [f"house {i}" for i in range(rows)],
            "tilt": np.where(draws.random(rows) < 0.1, np.nan, draws.normal(100, 30, rows)),
            "size": draws.lognormal(4, 1, rows).round(2),
            "floors": draws.integers(-3, 40, rows),
            "city": draws.choice(["Bern", "Zug", "Basel", "Chur"], rows, p=[0.5, 0.3, 0.18, 0.02]),
            "floor": draws.choice(["low", "mid", "high"], rows),
            "sold": pd.to_datetime("2020-01-01") + pd.to_timedelta(draws.integers(0, 900, rows), "D"),
            "agent": draws.choice([f"a{i}" for i in range(12)], rows),
            "weight": draws.integers(0, 3, rows) + draws.choice([0.5, 1.25], rows),
            "garden": draws.random(rows) < 0.5,
            "kind": draws.choice(["flat", "house", "hut"], rows),
            "rooms": draws.integers(1, 5, rows),
        }
    )
    frame["price"] = frame["size"] * 2 + draws.normal(0, 5, rows)
    if draws.random() < 0.3:
        frame.loc[draws.random(rows) < 0.05, ["price"]] = np.nan
        frame.loc[draws.random(rows) < 0.05, ["kind"]] = None
    return frame.sort_values(str(draws.choice(["price", "kind", "name"])), kind="stable", ignore_index=True)


def draw_case(seed: int) -> Case:
    """Return a table and settings."""
    draws = np.random.default_rng(seed)
    rows = int(draws.integers(40, 500))
    target, kind, settings = TARGETS[str(draws.choice([*TARGETS]))]
    columns = {
        name: options[draws.integers(len(options))]
        for name, options in ENCODERS.items()
        if draws.random() < 0.4 and not (name == "size" and isinstance(target, tuple))
    }
    if isinstance(target, tuple) and isinstance(columns.get("agent"), dict) and "folds" in columns["agent"]:
        del columns["agent"]
    table = {"target": target, "columns": columns, "missing_targets": "drop", **settings, **_draw_roles(draws, kind)}
    form, iterator = str(draws.choice([*WRITERS])), str(draws.choice(ITERATORS if kind == "class" else ITERATORS[:-1]))
    blocks = {
        "block_rows": int(rows ** draws.random()),
        "memory": str(draws.choice(["0 B", "3 KB", "1 GB"])),
    }
    trainer = _draw_trainer(draws, iterator, kind)
    exact = trainer["precision"] == "float64" or trainer["preprocessors"] or trainer["augmentations"]
    blocks["block_dtype"] = "float64" if exact else str(draws.choice(["float32", "float64"]))
    return Case(draw_frame(draws, rows), form, kind, table, blocks, trainer)


def _draw_roles(draws: np.random.Generator, kind: str) -> dict[str, Any]:
    chosen: tuple[dict[str, Any], ...] = (
        {"weights": "weight"},
        {"group": "agent", "columns": {}},
        {"time": "sold", "split_by": "block", "columns": {}},
        {"fold": {"number": 1, "of": 3}},
        {"exclude": ("name", "rooms") if kind != "class" else ("name", "price")},
        {"split": {"training": 0.5, "validation": 0.2, "test": 0.2}},
        {"seed": int(draws.integers(100))},
        {"split_by": "stratified"} if kind == "class" else {},
        {"class_weights": "balanced"} if kind == "class" else {},
    )
    roles: dict[str, Any] = {}
    for own in chosen:
        if draws.random() < 0.3 and not {*own} & {*roles}:
            roles |= own
    if "group" in roles:
        roles.pop("split_by", None)
    return roles


def _draw_trainer(draws: np.random.Generator, iterator: str, kind: str) -> dict[str, Any]:
    def some(options: Any, share: float) -> dict[str, Any]:
        return {
            f"p{i}": own if isinstance(own, dict) else str(own)
            for i, own in enumerate(options)
            if draws.random() < share
        }

    return {
        "iterator": iterator,
        "batch_size": int(draws.integers(1, 16)),
        "last_batch": str(draws.choice(["keep", "drop"])),
        "precision": str(draws.choice(["float32", "float64"])),
        "preprocessors": some(PREPROCESSORS, 0.25),
        "augmentations": some(AUGMENTATIONS[kind], 0.3),
    }


def compute_all(
    case: Case, path: Path, other: Path, saved: Path, blocks: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of all that a run computes."""
    data = Tabular(path, **case.table, **blocks)
    yield "learned", data.learned
    yield from ((f"rows of {name}", _read_rows(rows, case.blocks["block_dtype"])) for name, rows in data.items())
    network = "input() + dense(5, activation='tanh') + output() + " + COSTS[case.kind]
    with Environment("run", seed=3) as sigma:
        trainer = sigma.create_trainer(
            data=data, network=network, optimiser={"type": "adam", "learning_rate": 0.01},
            metrics=METRICS[case.kind], hooks={"rows": {"type": "row_loss", "most": 1000}}, **case.trainer,
        )  # fmt: skip
        yield from ((f"loss of {name} at the start", repr(trainer.evaluate(name))) for name in data)
        if case.has_one_order:
            trainer.fit(epochs=2)
            yield "published", trainer.session.state.published
            yield "history", {name: np.asarray(values).tobytes() for name, values in trainer.history.items()}
            sigma.exclude([1, 4])
            trainer.fit(epochs=3)
            yield "edited", repr(trainer.evaluate("training", edited=True))
        yield "state", state_bytes(trainer)
        yield from ((f"loss of {name}", repr(trainer.evaluate(name))) for name in data)
        trainer.save(saved)
    yield "predictions", load(saved).predict(str(other)).to_pandas().to_csv()


def _read_rows(rows: Dataset, dtype: str) -> dict[str, bytes]:
    """Return all rows of a split, floats of its inputs in the type that they have in blocks."""
    blocks = [rows.block(number) for number in range(rows.blocks)]
    return {name: b"".join(block[name].astype(dtype).tobytes() for block in blocks) for name in blocks[0]}


def compare(case: Case) -> list[str]:
    """Return the names of what differs between the two runs."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        path, other = folder / f"table.{case.form}", folder / "other.csv"
        WRITERS[case.form](case.frame, path)
        case.frame.head(30).to_csv(other, index=False)
        held, prepared = (
            {own: repr(value) for own, value in compute_all(case, path, other, folder / saved, blocks)}
            for saved, blocks in (("held", {}), ("prepared", {**case.blocks, "cache": folder / "cache"}))
        )
    return [own for own in {**held, **prepared} if held.get(own) != prepared.get(own)]


def main(rounds: int = 50, seed: int = 0) -> None:
    """Compare runs on so many tables; print those that differ, and how many were trained."""
    trained = 0
    for number in range(seed, seed + rounds):
        case = draw_case(number)
        trained += case.has_one_order
        if different := compare(case):
            print(number, different, case, flush=True)
    print(f"{rounds} tables, {trained} of them trained on both ways")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
