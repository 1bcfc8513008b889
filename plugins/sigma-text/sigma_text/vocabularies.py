"""Vocabularies of language models: what a network has learned to read and write, character by character or by token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, frozen

from sigma_data.encoded import describe_encoder, make_encoder
from sigma_kernel import SigmaConfigError, SigmaDataError

if TYPE_CHECKING:  # which import Arrow
    from sigma_text.encoders.tokenisers import Tokeniser
    from sigma_text.encoders.tokens import TokensEncoder

END, UNKNOWN = 0, 1  # indices of tokens
SHOWN = 8  # characters named in an error
LOST = "\ufffd"  # what stands for the bytes of an incomplete character


class Vocabulary(ABC):
    """The indices of a text, and the text of indices."""

    end: int | None = None  # index of what ends a text
    unknown: int | None = None  # index that is never written

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of indices."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the indices of the beginning of a text; raise SigmaDataError for one that cannot be read."""

    @abstractmethod
    def decode(self, codes: Sequence[int]) -> str:
        """Return the text of indices."""

    def stream(self, codes: list[int], added: Iterator[int]) -> Iterator[str]:
        """Append indices to the ``codes`` of a text, and yield what each adds to it, as soon as it is complete."""
        before, after = 0, len(codes)  # codes[before:after] are in the text already, and say how it goes on
        for code in added:
            codes.append(code)
            text, shown = self.decode(codes[before:]), self.decode(codes[before:after])
            if len(text) > len(shown) and not text.endswith(LOST):
                before, after = after, len(codes)
                yield text[len(shown) :]


@frozen
class CharacterVocabulary(Vocabulary):
    """Characters by index."""

    characters: str

    def __len__(self) -> int:
        """Return the number of characters."""
        return len(self.characters)

    def encode(self, text: str) -> list[int]:
        """Return the index of each character; raise SigmaDataError for unknown ones."""
        if lost := [c for c in dict.fromkeys(text) if c not in self.characters]:
            listing = ", ".join(map(repr, lost[:SHOWN])) + (" ..." if len(lost) > SHOWN else "")
            raise SigmaDataError(
                f"generate: the network has not learned {listing}. It knows these characters: {self.characters!r}."
            )
        return [self.characters.index(c) for c in text]

    def decode(self, codes: Sequence[int]) -> str:
        """Return the characters."""
        return "".join(self.characters[code] for code in codes)


@frozen(eq=False, slots=False)
class TokenVocabulary(Vocabulary):
    """The tokens of an encoder: 0 is the end of a text, and 1 any unknown token."""

    encoder: TokensEncoder
    state: Mapping[str, Any]
    end = END
    unknown = UNKNOWN

    @classmethod
    def from_plain(cls, saved: Any) -> TokenVocabulary:
        """Return what :meth:`to_plain` returned; raises SigmaDataError if it is damaged."""
        try:
            encoder: Any = make_encoder(saved["encoder"])
            vocabulary = cls(encoder, saved["state"])
            vocabulary.decode([len(vocabulary) - 1])
        except (AttributeError, LookupError, TypeError, ValueError, SigmaConfigError) as error:
            raise SigmaDataError(
                "tokens: their encoder is damaged in the checkpoint. Use another checkpoint, or train again."
            ) from error
        return vocabulary

    def to_plain(self) -> dict[str, Any]:
        """Return the encoder and its state as plain values."""
        encoder = evolve(self.encoder, file=None, lower=self.encoder.lowers)  # the state has what the file held
        return {"encoder": describe_encoder(encoder), "state": {**self.state}}

    @cached_property
    def _tokeniser(self) -> Tokeniser:
        return self.encoder.open(self.state)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each index."""
        return ("<end>", "<unknown>", *self._tokeniser.tokens)

    def __len__(self) -> int:
        """Return the number of indices."""
        return self._tokeniser.size

    def encode(self, text: str) -> list[int]:
        """Return the index of each token; raise SigmaDataError for a text without any."""
        codes: list[int] = self.pack([text]).tolist()
        if not codes:
            raise SigmaDataError(f"generate: the text {text!r:.60} has no token. Give one with a word.")
        return codes

    def decode(self, codes: Sequence[int]) -> str:
        """Return the text of the tokens between ends."""
        return self._tokeniser.join([code for code in codes if code != END])

    def pack(self, texts: Sequence[str]) -> np.ndarray:
        """Return the indices of texts one after another, int32, with an end between two of them."""
        rows, indices = self._tokeniser.encode(texts)
        packed = np.full(len(indices) + max(0, len(texts) - 1), END, np.int32)
        packed[np.arange(len(indices)) + rows] = indices
        return packed


def read_vocabulary(learned: Mapping[str, Any]) -> Vocabulary | None:
    """Return the vocabulary that a run learned; None if it was not trained on texts, to predict what follows."""
    if tokens := learned.get("tokens"):
        return TokenVocabulary.from_plain(tokens)
    characters = learned.get("characters")
    return CharacterVocabulary(str(characters)) if characters else None
