"""Byte pairs, by the library tokenizers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from sigma_data.sources import local
from sigma_kernel import SigmaDataError, SigmaError
from sigma_training.optional import optional

LARGEST = 1 << 26  # bytes of a tokenizer.json
TOGETHER = 1 << 13  # texts that are encoded at once


@frozen(eq=False)
class Pairs:
    """A tokenizer, without padding and truncation of its own."""

    tokenizer: Any

    @classmethod
    def learn(cls, batches: Iterable[Any], most: int) -> Pairs:
        """Return at most this many byte pairs, learned from batches of texts."""
        library = _import_library()
        tokenizer = library.Tokenizer(library.models.BPE())
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(vocab_size=most, initial_alphabet=alphabet, show_progress=False)
        tokenizer.train_from_iterator((texts.to_pylist() for texts in batches), trainer)
        return cls(tokenizer)

    @classmethod
    def from_file(cls, path: Path) -> Pairs:
        """Return the tokenizer of a ``tokenizer.json``; raises SigmaDataError for a file that is none."""
        with local(path).open() as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise SigmaDataError(f"{path}: has more than {LARGEST >> 20} MiB. Is this a tokenizer.json?")
        return cls._parse(content.decode(errors="replace"), f"{path}: is no tokenizer.json", "Save it anew.")

    @classmethod
    def from_plain(cls, saved: Any) -> Pairs:
        """Return the tokenizer that :meth:`to_plain` returned; raises SigmaDataError if it is damaged."""
        return cls._parse(
            json.dumps(saved), "tokens: the saved tokenizer is damaged", "Use another checkpoint, or train again."
        )

    @classmethod
    def _parse(cls, text: str, problem: str, remedy: str) -> Pairs:
        try:
            return cls(_parse_tokenizer(text))
        except SigmaError:
            raise
        except Exception as error:  # the library has no narrower one
            raise SigmaDataError(f"{problem}: {error}. {remedy}") from None

    def to_plain(self) -> Any:
        """Return the tokenizer as plain JSON values."""
        return json.loads(self.tokenizer.to_str())

    @property
    def size(self) -> int:
        """Return the number of different tokens."""
        return int(self.tokenizer.get_vocab_size())

    def count_lengths(self, batches: Iterable[Any]) -> Counter[int]:
        """Return how many texts have each number of tokens."""
        lengths: Counter[int] = Counter()
        for texts in batches:
            lengths.update(len(ids) for some in self._encode(texts) for ids in some)
        return lengths

    @property
    def tokens(self) -> list[str]:
        """Return the name of each token, by number."""
        return [self.tokenizer.id_to_token(number) or f"<{number}>" for number in range(self.size)]

    def decode(self, numbers: Sequence[int]) -> str:
        """Return the text of tokens; incomplete characters are replaced."""
        library, own = _import_library(), self.tokenizer
        if own.decoder is None and isinstance(own.pre_tokenizer, library.pre_tokenizers.ByteLevel):  # as learned here
            return str(library.decoders.ByteLevel().decode([own.id_to_token(number) for number in numbers]))
        return str(own.decode([*numbers], skip_special_tokens=False))

    def encode(self, texts: Any, length: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the texts of all tokens, at most ``length`` of each if given, and the tokens' numbers."""
        counts, parts = list[int](), [np.zeros(0, np.int64)]
        for some in self._encode(texts):
            numbers = [ids[:length] for ids in some]
            counts.extend(map(len, numbers))
            parts.append(np.fromiter(chain.from_iterable(numbers), np.int64, sum(counts[-len(numbers) :])))
        return np.repeat(np.arange(len(counts)), counts), np.concatenate(parts)

    def _encode(self, texts: Any) -> Iterator[list[list[int]]]:
        """Yield the tokens of so many texts at a time, as their objects of Python fit into caches."""
        for first in range(0, len(texts), TOGETHER):
            some = texts.slice(first, TOGETHER).to_pylist()
            yield [encoding.ids for encoding in self.tokenizer.encode_batch_fast(some)]


@lru_cache(maxsize=4)
def _parse_tokenizer(text: str) -> Any:
    """Return a tokenizer; the same one for the same text, as it keeps the pairs of words that it has seen."""
    tokenizer = _import_library().Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _import_library() -> Any:
    return optional("byte pairs", "tokenizers")
