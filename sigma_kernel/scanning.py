"""Read a small language from left to right: what was looked for in vain where reading stops, was expected there.

A language is a table of its words, each with the pattern that it has in the text.  Its rules are methods of a child of
:class:`Scanner`: those that contain others are generators, which yield what they contain and are given its meaning.  So
a text may be nested as deeply as it likes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import Any, ClassVar

from sigma_kernel.errors import SigmaError

Rule = Generator["Rule", Any, Any]


class Word(str):
    """A part of the text, and where it begins."""

    at: int


class Scanner(ABC):
    """A text, read up to a place."""

    words: ClassVar[Mapping[str, str]]  # the pattern of each word; where it has a group, that is the word

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._missed = defaultdict[int, set[str]](set)  # by place

    @abstractmethod
    def unread(self, at: int, expected: set[str]) -> SigmaError:
        """Return the error for a text that says none of the words expected there."""

    def take(self, name: str) -> Word | None:
        """Return the word that stands here and go behind it; None for another."""
        found = re.compile(self.words[name]).match(self.text, self.at)
        if found is None:
            self._missed[self.at].add(name)
            return None
        word = Word(found[found.re.groups])
        word.at, self.at = found.start(found.re.groups), found.end()
        return word

    def need(self, name: str) -> Word:
        """Return the word that stands here; raises what is wrong with another."""
        word = self.take(name)
        if word is None:
            raise self.unread(*max(self._missed.items()))
        return word

    @staticmethod
    def read(rule: Rule) -> Any:
        """Return the meaning of what a rule reads."""
        rules, meaning = [rule], None
        while rules:
            try:
                rules.append(rules[-1].send(meaning))
                meaning = None
            except StopIteration as done:
                rules.pop()
                meaning = done.value
        return meaning
