"""Hide tokens of sequences."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.varying import Sections, numbers_of
from sigma_kernel import Augmentation, SigmaDataError
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import and_, ge, le


@frozen
class MaskTokens(Augmentation):
    """Replace a share of the tokens of each sequence by a token that stands for a hidden one.

    Raises SigmaDataError for a section without integers, and for a token that their type lacks.

    Args:
        token: Index of the token that stands for a hidden one.
        share: Probability with which a token is hidden.
        keep: Indices of tokens that are never hidden, such as that of padding.
        section: Section of the token indices.
    """

    token: int = field(validator=ge(0))
    share: float = field(default=0.15, validator=and_(ge(0), le(1)))
    keep: tuple[int, ...] = ()
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with hidden tokens."""
        tokens = numbers_of("mask_tokens", sections, self.section)
        if tokens.dtype.kind == "f":
            raise SigmaDataError(f"mask_tokens: section {self.section!r} holds {tokens.dtype}. It takes indices.")
        if self.token > np.iinfo(tokens.dtype).max:
            raise SigmaDataError(f"mask_tokens: {self.token} is beyond {tokens.dtype}. Give indices in a larger type.")
        hidden = (draw.uniform(tokens.shape[1:]) < self.share) & ~np.isin(tokens, self.keep)
        return {**sections, self.section: np.where(hidden, tokens.dtype.type(self.token), tokens)}
