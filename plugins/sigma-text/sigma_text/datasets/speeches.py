"""Speeches of three plays of Shakespeare, to say from which play they are."""

from __future__ import annotations

from itertools import pairwise

from attrs import define

from sigma_text.datasets.encoded_texts import EncodedTexts, LabelledTexts
from sigma_text.datasets.shakespeare import Shakespeare

PLAYS = {  # how they begin
    "Richard III": "GLOUCESTER:\nNow is the winter",
    "Richard II": "KING RICHARD II:\nOld John of Gaunt",
    "Romeo and Juliet": "SAMPSON:\nGregory",
}


@define(eq=False, kw_only=True)
class Speeches(EncodedTexts):
    """The 2,448 speeches of Richard III, Richard II, and Romeo and Juliet, without their speakers.

    ``inputs`` are those of the encoder, by default the indices of words; ``targets`` are the plays.  44 % of the
    speeches are of Richard III.  The plays are those of the data set ``shakespeare``, in the public domain.
    """

    def read(self) -> LabelledTexts:
        """Return the speeches in the order of the plays."""
        _, text = Shakespeare().read()
        ends = [*(text.index(beginning) for beginning in PLAYS.values()), len(text)]
        speeches, plays = list[str](), list[str]()
        for play, (first, last) in zip(PLAYS, pairwise(ends), strict=True):
            words = [speech.partition(":\n")[2] for speech in text[first:last].strip().split("\n\n")]
            speeches += filter(None, words)
            plays += [play] * sum(map(bool, words))
        return LabelledTexts(speeches, plays)
