"""Draft a configuration that trains on texts as it is: an encoder, a network of a size for the rows, and an end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from sigma_data.profiling.drafting import FEWEST, SHARES, PredictionTask, choose_batch_size, quote
from sigma_text.encoders.tokenisers import FIRST
from sigma_text.profile import TextProfile

FEW = 5_000  # texts below which a bag of words is better than embeddings
MOST_OF_BAG = 5_000  # words, each a column of numbers
VOCABULARY = 200, 20_000  # least and most words
UNITS = ((50_000, 32), (200_000, 64))  # of embeddings below so many texts
MOST_UNITS = 128
LONGEST = 256  # words of a text that are read


@frozen
class TextDraft:
    """What a draft is made of.

    ``head`` describes the data in a line; ``place`` are the lines of the table ``[data]`` up to the encoder, and
    ``columns`` those of its columns, if it is a table; ``smallest`` is the number of texts of the smallest class.
    """

    name: str
    head: str
    place: Sequence[str]
    profile: TextProfile
    task: PredictionTask
    smallest: int
    column: str = ""
    excluded: Sequence[str] = ()
    notes: Sequence[str] = ()
    has_splits: bool = False

    @property
    def text(self) -> str:
        """Return the configuration."""
        head = (f"# {self.head}.", "", "format = 1", "", "[run]", f"name = {quote(self.name)}", "seed = 0", "")
        return "\n".join([*head, *self._data(), *self._network(), *self._training(), ""])

    # -- parts of the text ---------------------------------------------------------------------------------------------
    def _data(self) -> Iterator[str]:
        yield from ("[data]", *self.place)
        if not self.column:
            yield f"encoder = {self._encoder}"
        if not self.has_splits:
            yield SHARES
            if self.task.classes and self.smallest >= FEWEST:
                yield 'split_by = "stratified"'
        yield from (f"batch_size = {choose_batch_size(self.profile.rows)}", "")
        if self.column:
            yield f"[data.columns]                  # {self.profile.sentence}"
            yield f"{quote(self.column)} = {self._encoder}"
            yield from (f'{quote(name)} = "exclude"' for name in self.excluded)
            yield ""
        if not self.task.classes:
            yield from ("[data.preprocessors.target]     # predictions are in the units of the column all the same",)
            yield from ('type = "standardise"', 'section = "targets"', "")

    @property
    def _is_bag(self) -> bool:
        return self.profile.rows < FEW

    @property
    def _words(self) -> int:
        """Return the number of words to tell apart: those of several texts."""
        least, most = VOCABULARY
        return max(least, min(MOST_OF_BAG if self._is_bag else most, self.profile.common))

    @property
    def _encoder(self) -> str:
        if self._is_bag:
            return f'{{ type = "bag_of_words", most = {self._words} }}'
        length = min(LONGEST, self.profile.usual)
        return f'{{ type = "tokens", most = {self._words + FIRST}, length = {length} }}'

    def _network(self) -> Iterator[str]:
        ends = f"output({self.task.classes}) + softmax_cross_entropy()"
        if not self.task.classes:
            ends = "output(1) + squared_difference()"
        yield f"[network]                       # of a size for {self.profile.rows:,} texts"
        yield 'architecture = """'
        if self._is_bag:
            yield f"input() + dropout(0.5) + {ends}"
        else:
            units = next((units for limit, units in UNITS if self.profile.rows < limit), MOST_UNITS)
            yield f'input(none, dtype="int32") + embedding({self._words + FIRST}, {units}, padding=0) + permute(2, 1)'
            yield f"+ global_average_pool() + dropout(0.3) + {ends}"
        yield from ('"""', "")

    def _training(self) -> Iterator[str]:
        epochs = max(10, min(100, 1_000_000 // max(1, self.profile.rows)))
        rate = 0.01 if self._is_bag else 0.003
        yield from ("[trainer]", f'optimiser = {{ type = "adamw", learning_rate = {rate} }}', f"epochs = {epochs}", "")
        score = "accuracy" if self.task.classes else "r_squared"
        yield from ("[hooks.score]", f'type = "{score}"', 'on = "validation"')
        if not self.task.classes:
            yield 'metrics = { error = "mean_absolute_error" }'
        yield from ('every = "1 epoch"', "", "[hooks.finish]                  # the best parameters are restored")
        yield from ('type = "early_stop"', 'value = "validation.loss"', "patience = 5", "restore = true")
