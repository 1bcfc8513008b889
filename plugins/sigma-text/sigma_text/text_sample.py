"""Generate text during training."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, TextValue
from sigma_kernel.settings import and_, finite, ge, le, min_len, whole


@define(eq=False, kw_only=True)
class TextSample(Hook):
    """Continue a text by the network that is trained; log the whole, and publish it as ``text.sample``.

    The run folder's ``curves.bin`` has it among the ``texts`` of the row of its epoch, and its media as well.
    ``sigma predict RUN --text`` writes the same for the same parameters, length, temperature and seed.

    Args:
        text: Beginning of the text.
        length: Number of characters or tokens that are added; fewer, if the text ends.
        temperature: With 0, the most probable ones; below 1, safer ones than those that the network predicts.
        seed: Seed of the random choices; the same each time, so that samples can be compared.
    """

    every: TimeStep = every(1, "epoch")
    text: str = field(default="To be", validator=min_len(1))
    length: int = field(default=120, validator=and_(whole, ge(1), le(10_000)))
    temperature: float = field(default=0.7, validator=and_(finite, ge(0)))
    seed: int = field(default=0, validator=and_(whole, ge(0)))

    @property
    def splits(self) -> Sequence[str]:
        """Return the training split, so that parameters are at hand in the background as well."""
        return ["training"]

    @property
    def writes(self) -> Sequence[str]:
        """Return the one address."""
        return ["text.sample"]

    def fire(self, context: HookContext) -> None:
        """Continue the text, log it and publish it."""
        written = self.text + context.generate(self.text, self.length, self.temperature, self.seed)
        context.publish("text.sample", written)
        context.publish("text.sample", TextValue(written))
        context.log(f"epoch {context.moment.epoch} writes:\n" + "\n".join(f"  {line}" for line in written.split("\n")))
