"""Train the recipes in Sigma and in PyTorch, with the same seeds, and write the table of performance.md.

``python -m figures.recipes [NAME...]`` in the folder ``docs``: all recipes take some minutes. Each is trained with as
many seeds as its row says, or ``--seeds N``; PyTorch draws its own initial values for the first five. MNIST is
downloaded, unless ``--mnist FOLDER`` has its IDX files. The exit code is 1 if a mean of Sigma's is not as close to that
of PyTorch, from the same initial values, as the page says.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from attrs import field, frozen

from figures import files, recipe_table
from figures.in_torch import ROWS, Row, Scores, copy, draw
from sigma_kernel import Environment, catalogue
from sigma_run import config
from sigma_training import NetworkTrainer

torch.set_num_threads(1)
Batches = Callable[[int], Iterator[np.ndarray]]
OWN = 5  # seeds for which PyTorch draws its own initial values and orders


@frozen(eq=False)
class Task:
    """What Sigma trains on: its rows by split, preprocessed, the order of batches, and the initial values in order."""

    row: Row
    trainer: NetworkTrainer
    values: Sequence[np.ndarray] = field(init=False)

    @values.default
    def _(self) -> Sequence[np.ndarray]:
        session = self.trainer.session
        return [session.host(f"network.layers.{name}").copy() for name in session.setup.model.parameters()]

    def split(self, name: str) -> tuple[Any, Any]:
        """Return inputs and targets of a split."""
        evaluator = self.trainer.session.setup.evaluator
        found = evaluator.prepare(evaluator.data(name, edited=False).block(0))
        sections = (torch.tensor(found[section]) for section in ("inputs", self.row.targets))
        inputs, targets = (one.long() if one.dtype == torch.int32 else one for one in sections)
        return inputs, targets

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the rows of each batch of an epoch."""
        feed = self.trainer.session.setup.feed
        return self._cut(feed.iterator.indices(feed.seed, epoch, 0, feed.dataset.rows(0)))

    def drawn(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the rows of batches that PyTorch draws."""
        return self._cut(torch.randperm(self.trainer.session.setup.feed.dataset.rows(0)).numpy())

    def _cut(self, order: np.ndarray) -> Iterator[np.ndarray]:
        size = self.trainer.session.setup.feed.batch_size
        return (order[start : start + size] for start in range(0, len(order), size))


def in_torch(task: Task, module: Any, batches: Batches) -> Scores:
    """Train in PyTorch; return the last scores, or the best ones."""
    if task.row.train:
        return task.row.train(task, module, batches)
    row, optimiser = task.row, task.row.optimiser([p for p in module.parameters() if p.requires_grad])
    each = task.trainer.session.setup.feed.iterations_per_epoch
    schedule = row.schedule(optimiser, each) if row.schedule else None
    (x, y), validation, found, best = task.split("training"), task.split("validation"), [], None
    while not found or not row.ends(found):
        module.train()
        for rows in batches(len(found)):
            optimiser.zero_grad()
            row.loss(module(x[rows]), y[rows]).backward()
            if row.clip is not None:
                torch.nn.utils.clip_grad_norm_(module.parameters(), row.clip)
            optimiser.step()
            if schedule:
                schedule.step()
        found.append(scored(row, module, *validation))
        best = best if best is not None and found[-1]["loss"] >= best["loss"] else found[-1]
    return best if row.restore else found[-1]


def scored(row: Row, module: Any, x: Any, y: Any) -> Scores:
    """Return the scores of a network in evaluation."""
    module.eval()
    with torch.no_grad():
        return row.scores(module(x), y)


def evaluated(row: Row, trainer: NetworkTrainer) -> Scores:
    """Return Sigma's scores on the validation rows."""
    if row.address:
        return {row.score: float(trainer.history[row.address][-1])}
    return trainer.evaluate("validation", row.metrics)


def opened(row: Row, name: str, seed: int, settings: Sequence[str] = ()) -> Environment:
    """Return a recipe's environment with a seed."""
    changed = [f"run.seed={seed}", f"run.precision={row.precision}", *row.settings, *settings]
    recipe, changed = name.partition(",")[0], [one.replace("VOICES", str(files.voices())) for one in changed]
    return config.build(config.load(catalogue().load("recipe", recipe).text, changed, name=recipe))


def compared(name: str, seed: int, settings: Sequence[str] = ()) -> dict[str, float]:
    """Return the score of Sigma, and of PyTorch from the ``same`` values in the same order, and from its ``own``.

    Its own it draws for the first seeds alone.
    """
    row = ROWS[name]
    with opened(row, name, seed, settings) as environment:
        (trainer,) = environment.trainers.values()
        task, module = Task(row, trainer), row.network()
        torch.manual_seed(seed)
        draw(module, row.initialise)
        same = deepcopy(module)
        copy(same, task.values)
        found = {"same": in_torch(task, same, task.batches)}
        if seed < OWN:
            found["own"] = in_torch(task, module, task.drawn)
        environment.run()
        found["sigma"] = evaluated(row, trainer)
    return {column: scores[row.score] for column, scores in found.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the named recipes, or all; keep the scores, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*ROWS, []], default=[])
    parser.add_argument("--seeds", type=int, help="how many; the first is 0 (default: as many as the row says)")
    parser.add_argument("--mnist", help="the folder of MNIST's four IDX files, or of a part of them")
    given = parser.parse_args(arguments)
    wrong = []
    for name in given.names or ROWS:
        part = files.settings(name, given.mnist)
        found = [compared(name, seed, part) for seed in range(given.seeds or ROWS[name].seeds)]
        scores = {column: [one[column] for one in found if column in one] for column in recipe_table.COLUMNS}
        keep(name, {"measure": ROWS[name].measure, **scores})
        print(name, json.dumps(scores), flush=True)
        wrong += [name] if not recipe_table.agrees(ROWS[name].measure, scores) else []
    for name in wrong:
        print(f"{name}: the means differ by more than the page says.", file=sys.stderr)
    return int(bool(wrong))


def keep(name: str, result: dict[str, Any]) -> None:
    """Write the scores of a recipe, and the table with them."""
    results = dict(sorted({**recipe_table.read(), name: result}.items()))
    recipe_table.KEPT.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = recipe_table.PAGE.read_text("utf-8")
    recipe_table.PAGE.write_text(recipe_table.insert(page, results), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
