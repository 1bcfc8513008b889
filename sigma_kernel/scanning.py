"""A scanner for recursive-descent parsers; errors list the tokens that were tried at the furthest position.

A language is a subclass of :class:`Scanner` with a table of tokens and a method for each grammar rule. Rules that
contain other rules are generators: they yield a rule and receive its result, so the depth of nesting is not limited by
Python's stack.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import Any, ClassVar

from sigma_kernel.errors import SigmaError

OWN = "python"  # in texts and tables, in place of a component's name: the path package.module:Object of own code
Rule = Generator["Rule", Any, Any]


class Word(str):
    """A token, and its position in the text."""

    at: int


class Scanner(ABC):
    """A text and the position up to which it has been read."""

    words: ClassVar[Mapping[str, str]]  # the pattern of each token by name; a group is its value

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._missed = defaultdict[int, set[str]](set)  # by position

    @abstractmethod
    def unread(self, at: int, expected: set[str]) -> SigmaError:
        """Return the error for a text that has none of the expected tokens at a position."""

    def take(self, name: str) -> Word | None:
        """Consume a token and return it, or None if the text continues differently."""
        match = re.compile(self.words[name]).match(self.text, self.at)
        if match is None:
            self._missed[self.at].add(name)
            return None
        word = Word(match[match.re.groups])
        word.at, self.at = match.start(match.re.groups), match.end()
        return word

    def need(self, name: str) -> Word:
        """Consume a token and return it; raises an error if the text continues differently."""
        word = self.take(name)
        if word is None:
            raise self.unread(*max(self._missed.items()))
        return word

    @staticmethod
    def read(rule: Rule) -> Any:
        """Return the result of a rule."""
        rules, result = [rule], None
        while rules:
            try:
                rules.append(rules[-1].send(result))
                result = None
            except StopIteration as done:
                rules.pop()
                result = done.value
        return result
