"""Pictures that a network makes of random numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Outlook, PictureValue
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.settings import and_, ge, instance_of, le


@define(eq=False, kw_only=True)
class GeneratedPictures(Hook):
    """Draw pictures with a generator from normal numbers, always the same, and publish them as one, ``pictures``.

    Shades reach from ``low`` to ``high``, so that pictures of different moments compare.

    Args:
        layer: The layer whose output is ``(height, width)`` or ``(channels, height, width)``; by default the first
            output.
        section: The section of the input that has the numbers; by default the first.
        count: Number of pictures.
        seed: Seed of the numbers.
        low: Value that is black.
        high: Value that is white.
        weights: Modifier whose weights draw in place of the parameters, such as ``average``.
        name: Address of the pictures.
    """

    every: TimeStep = every(1, "epoch")
    layer: str = ""
    section: str = ""
    count: int = field(default=16, validator=and_(ge(1), le(256)))
    seed: int = field(default=0, validator=ge(0))
    low: float = 0.0
    high: float = 1.0
    weights: str = field(default="", validator=instance_of(str, "the name of a modifier"))
    name: str = "pictures"

    @property
    def writes(self) -> Sequence[str]:
        """Return the one address."""
        return [self.name]

    def check(self, outlook: Outlook) -> None:
        """Raise SigmaNetworkError if the output is not a picture, SigmaConfigError for shades of no extent."""
        shape = outlook.ends(self.layer, self.section)[1].shape
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[0] not in (1, 3)):
            raise SigmaNetworkError(
                f"generated_pictures: an output of shape {shape} is not a picture. Set layer to one of shape (height,"
                " width), or with 1 or 3 channels before these."
            )
        if not self.low < self.high:
            raise SigmaConfigError(f"generated_pictures: low = {self.low:g} must be below high = {self.high:g}.")

    def fire(self, context: HookContext) -> None:
        """Draw and publish."""
        inputs, row = context.ends(self.layer, self.section)
        draws = np.random.Generator(np.random.Philox(self.seed))
        samples = draws.normal(size=(self.count, *inputs.shape)).astype(inputs.dtype)
        still = np.zeros((self.count, *row.shape), row.dtype)
        outputs, _ = context.excite(samples, still, layer=self.layer, section=self.section)
        pictures = [PictureValue.shade(output, self.low, self.high) for output in outputs]
        context.publish(self.name, PictureValue.tile(pictures).fit())
