"""Windows of a text as a data set: characters or tokens by index, and as targets those that follow them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from attrs import evolve, frozen

from sigma_data.arrays import read_only
from sigma_kernel import Dataset, Label, SigmaDataError
from sigma_kernel.graph import Spec
from sigma_text.vocabularies import TokenVocabulary

SHOWN = 8  # characters named in an error


@frozen(eq=False, slots=False)
class TextWindows(Dataset):
    """Windows of ``length`` characters, one after another, in one block without a copy.

    ``inputs`` and ``targets`` are indices into ``characters``, int32; a target is the character that follows. The last
    characters of the text, too few for a window, are left out. ``where`` names the text in errors. Raises
    SigmaDataError for a text that is too short for one window.
    """

    unit: ClassVar[str] = "characters"
    setting: ClassVar[str] = "length"

    where: str
    codes: np.ndarray
    characters: Sequence[str]
    length: int

    def __attrs_post_init__(self) -> None:
        """Raise SigmaDataError unless there is a window."""
        if len(self.codes) <= self.length:
            raise SigmaDataError(
                f"{self.where}: has {len(self.codes)} {self.unit}; a window with {self.setting} = {self.length} "
                f"takes {self.length + 1}. Choose a smaller {self.setting}, a larger share, or a longer text."
            )

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return the spec of a window."""
        return {name: Spec((self.length,), "int32") for name in ("inputs", "targets")}

    @property
    def blocks(self) -> int:
        """Return 1."""
        return 1

    def rows(self, block: int) -> int:
        """Return the number of windows."""
        return (len(self.codes) - 1) // self.length

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return views that cannot be written to."""
        return read_only(self._windows)

    @cached_property
    def _windows(self) -> dict[str, np.ndarray]:
        count = self.rows(0) * self.length
        starts = {"inputs": 0, "targets": 1}
        return {name: self.codes[at : at + count].reshape(-1, self.length) for name, at in starts.items()}

    def encode(self, section: str, classes: int | None, names: Sequence[Label] = ()) -> TextWindows:
        """Return the windows encoded by other characters, such as those of a trained network, if given."""
        if classes and len(self.characters) > classes:
            count = len(self.characters)
            raise SigmaDataError(
                f"{self.where}: the text has {count} different {self.unit}, and the network predicts {classes}. "
                f"Write embedding({count}, ...) and output({count})."
            )
        return self.recode([*map(str, names)]) if names and [*names] != [*self.characters] else self

    def recode(self, names: Sequence[str]) -> TextWindows:
        """Return the windows by the characters of a trained network; SigmaDataError for those that it has not."""
        characters = "".join(names)
        codes = np.array([characters.find(c) for c in self.characters], np.int32)
        if lost := [self.characters[i] for i in np.unique(self.codes) if codes[i] < 0]:
            raise unknown(self.where, lost, characters, "The network has not learned them: replace them.")
        return evolve(self, codes=codes[self.codes], characters=characters)

    def class_names(self, section: str) -> Sequence[Label]:
        """Return the characters by index."""
        return tuple(self.characters) if section in self.sections else ()

    @property
    def learned(self) -> Mapping[str, Any]:
        """Return the characters, from which a trained network predicts a text."""
        return {"characters": "".join(self.characters)}


@frozen(eq=False, slots=False)
class TokenWindows(TextWindows):
    """Windows of ``length`` tokens of texts that follow one another, with index 0 between them.

    ``characters`` are the names of the tokens by index, and ``vocabulary`` what encodes and decodes texts.
    """

    unit: ClassVar[str] = "tokens"
    setting: ClassVar[str] = "context"

    vocabulary: TokenVocabulary

    def recode(self, names: Sequence[str]) -> TextWindows:
        """Raise SigmaDataError, as the network knows other tokens."""
        raise SigmaDataError(
            f"{self.where}: was divided into other tokens than those of the network. Predict from the texts with "
            "`sigma predict RUN texts/`, or give both runs the same `file` of byte pairs."
        )

    @property
    def learned(self) -> Mapping[str, Any]:
        """Return the tokens, from which a trained network continues a text."""
        return {"tokens": self.vocabulary.to_plain()}


def indices(text: str, characters: str, where: str, remedy: str) -> np.ndarray:
    """Return the index of each character of a text, int32; raise SigmaDataError for unknown ones, with their line."""
    table, points = _points(characters), _points(text)
    order = np.argsort(table, kind="stable")
    places = order[np.searchsorted(table, points, sorter=order).clip(max=len(table) - 1)]
    wrong = table[places] != points
    if wrong.any():
        first = text.count("\n", 0, int(wrong.argmax())) + 1
        raise unknown(f"{where}:{first}", [chr(point) for point in np.unique(points[wrong])], characters, remedy)
    return np.asarray(places, np.int32)


def unknown(where: str, lost: Sequence[str], known: Iterable[str], remedy: str) -> SigmaDataError:
    """Return the error for characters of a text that are not known."""
    listing = ", ".join(map(repr, lost[:SHOWN])) + (f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else "")
    return SigmaDataError(f"{where}: {listing}: not among the {len([*known])} characters that are known. {remedy}")


def _points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
