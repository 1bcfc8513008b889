"""Draft a configuration that trains on sequences, such as sounds: convolutions over steps, and an end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from sigma_data.profiling.drafting import FEWEST, SHARES, PredictionTask, choose_batch_size, quote

REST = "split = { training = 0.85, validation = 0.15 }"  # of the split for training
EPOCHS = (20, 200, 200_000)  # fewest, most, and sequences to train on in all


@frozen
class StepDraft:
    """What a draft is made of.

    ``head`` describes the data in a line; ``data`` are the lines of the table ``[data]`` up to the split, ``beginning``
    is that of the network. ``rows`` are those with a target, ``smallest`` those of the smallest class; ``parts`` are
    the splits that the data have.
    """

    name: str
    head: str
    data: Sequence[str]
    beginning: str
    task: PredictionTask
    rows: int
    smallest: int
    parts: Sequence[str] = ()

    @property
    def text(self) -> str:
        """Return the configuration."""
        head = (
            f"# {self.head}.",
            "",
            "format = 1",
            "",
            "[run]",
            f"name = {quote(self.name)}",
            "seed = 0",
            "",
            "[data]",
        )
        return "\n".join([*head, *self.data, *self._split(), *self._network(), *self._training(), ""])

    def _split(self) -> Iterator[str]:
        if not self.parts or "validation" not in self.parts:
            yield REST if self.parts else SHARES
        if not self.parts and self.task.classes and self.smallest >= FEWEST:
            yield 'split_by = "stratified"'
        yield from (f"batch_size = {choose_batch_size(self.rows)}", "")

    def _network(self) -> Iterator[str]:
        cost = f"output({self.task.classes}) + softmax_cross_entropy()"
        if not self.task.classes:
            yield from ("[data.preprocessors.target]     # predictions are in the units of the column all the same",)
            yield from ('type = "standardise"', 'section = "targets"', "")
            cost = "output(1) + squared_difference()"
        convolution = 'conv1d(32, 5, padding="same") + activation("relu")'
        yield from (f"[network]                       # of a size for {self.rows:,} rows", 'architecture = """')
        yield from (self.beginning, f"+ {convolution} + {convolution}")
        yield from (f"+ global_max_pool() + dropout(0.2) + {cost}", '"""', "")

    def _training(self) -> Iterator[str]:
        fewest, most, rows = EPOCHS
        epochs = max(fewest, min(most, rows // max(1, self.rows)))
        score = "accuracy" if self.task.classes else "r_squared"
        yield from ("[trainer]", 'optimiser = { type = "adamw", learning_rate = 0.003 }', f"epochs = {epochs}", "")
        yield from ("[hooks.score]", f'type = "{score}"', 'on = "validation"', 'every = "1 epoch"', "")
        yield "[hooks.finish]                  # the best parameters are restored"
        yield from ('type = "early_stop"', 'value = "validation.loss"', "patience = 20", "restore = true")
