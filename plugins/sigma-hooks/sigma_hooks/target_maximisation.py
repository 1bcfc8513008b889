"""Activation maximisation: draw the input that maximises each output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
from attrs import Factory, define, field

from sigma_hooks.reading import file_name, placeholders
from sigma_kernel import TimeStep
from sigma_kernel.contracts import Hook, HookContext, Outlook, PictureValue
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import FLOATS, Spec
from sigma_kernel.settings import ge, gt

OWN = ("output", "layer")
MOST_TILES, SIDE = 100, 120  # of the picture of all outputs, and pixels along a side of each
START = 0.01  # standard deviation of the noise that gradient ascent starts from, in units of the input


@define(eq=False, kw_only=True)
class TargetMaximisation(Hook):
    """Find the input that maximises each output by gradient ascent, and write it as a PNG image.

    Ascends for ``steps`` along the gradient of the output before its cost, with fixed parameters, from noise drawn with
    ``seed``.

    If the network has several inputs, one is drawn and the others are held as ``given``, or at 0, the mean of
    standardised data.  The unit of a layer with channels is a channel; its value is the mean over the positions.

    No image is written if the run has no folder. Shades are rescaled from the minimum to the maximum element. Inputs
    are ``(height, width)`` or ``(channels, height, width)`` with 1 or 3 channels; for a flat input, set ``shape``.
    Publishes ``target_maximisation.<output>``, the value reached, or ``target_maximisation.<layer>.<output>`` if a
    layer is named; and as ``target_maximisation.all`` the images of the first 100 in one as media, each with its own
    shades.

    Erhan, Bengio, Courville and Vincent, Visualizing Higher-Layer Features of a Deep Network, 2009; with ``l2`` as in
    Simonyan, Vedaldi and Zisserman, Deep Inside Convolutional Networks, 2014.

    Args:
        layer: Layer whose units are maximised, an output or a hidden one; by default the first output.
        section: Section of the input to draw; by default the first.
        given: Values of the other inputs by section, a number or one sample, in preprocessed units.
        outputs: Indices of the outputs or units to draw; by default all.
        steps: Steps of the ascent.
        rate: Root mean square of a step, in preprocessed units.
        l2: Strength of the pull of the input to 0.
        low: Least value of an element, in preprocessed units; no bound by default.
        high: Greatest value of an element, in preprocessed units; no bound by default.
        seed: Seed of the noise to begin with.
        shape: Shape of the image, for a flat input.
        folder: Folder in the run folder to write to.
        name: Name of the file, which may contain ``{output}``, ``{layer}`` and addresses in braces.
        zoom: Pixels of the image along each side of an element.
    """

    every: TimeStep = TimeStep("stop")
    layer: str = ""
    section: str = ""
    given: Mapping[str, float | Sequence[float]] = field(factory=dict)
    outputs: Sequence[int] | None = None
    steps: int = field(default=200, validator=ge(1))
    rate: float = field(default=0.05, validator=gt(0.0))
    l2: float = field(default=0.5, validator=ge(0.0))
    low: float | None = None
    high: float | None = None
    seed: int = field(default=0, validator=ge(0))
    shape: Sequence[int] | None = None
    folder: str = "images"
    name: str = field(
        default=Factory(lambda self: "{layer}-{output}.png" if self.layer else "output-{output}.png", takes_self=True)
    )
    zoom: int = field(default=8, validator=ge(1))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a name without ``{output}``, or a folder outside the run's."""
        if "output" not in placeholders(self.name):
            raise SigmaConfigError(
                f"target_maximisation.name: {self.name!r} is the same for all outputs. Put {{output}} in it."
            )
        if Path(self.folder).is_absolute() or ".." in Path(self.folder).parts:
            raise SigmaConfigError(f"target_maximisation.folder: {self.folder!r} must be inside the run's folder.")

    @property
    def reads(self) -> Sequence[str]:
        """Return the addresses in the name."""
        return [name for name in placeholders(self.name) if name not in OWN]

    @property
    def writes(self) -> Sequence[str]:
        """Return the pattern of all addresses."""
        return [f"{self._head}.*"]

    @property
    def _head(self) -> str:
        return f"target_maximisation.{self.layer}" if self.layer else "target_maximisation"

    def _ends(self, context: HookContext | Outlook) -> tuple[Spec, Spec]:
        return context.ends(self.layer, self.section) if self.layer or self.section else context.ends()

    def check(self, outlook: Outlook) -> None:
        """Raise a SigmaError for outputs that do not exist, and inputs that are not float images."""
        self._select_outputs(outlook)
        inputs = self._ends(outlook)[0]
        self._sides(inputs.shape)
        for section, value in self.given.items():
            shape = outlook.ends("", section)[0].shape
            if np.shape(value) not in ((), shape):
                raise SigmaConfigError(f"target_maximisation.given: {section!r} has shape {shape} (got {value!r}).")
        if inputs.dtype not in FLOATS:
            raise SigmaNetworkError(
                f"target_maximisation: the input holds {inputs.dtype}, and only floats have gradients. "
                "Add the preprocessor scale or cast."
            )

    def fire(self, context: HookContext) -> None:
        """Run gradient ascent, publish the values reached and write the images."""
        samples, reached = self.climb(context, self._select_outputs(context))
        pictures = [PictureValue.shade(sample.reshape(self._sides(sample.shape))) for sample in samples]
        for output, picture, value in zip(self._select_outputs(context), pictures, reached, strict=True):
            context.publish(f"{self._head}.{output}", float(value))
            self._write(context, output, picture)
        small = [picture.fit(SIDE) for picture in pictures[:MOST_TILES]]
        context.publish(f"{self._head}.all", PictureValue.tile(small).fit())

    def _select_outputs(self, context: HookContext | Outlook) -> Sequence[int]:
        shape = self._ends(context)[1].shape
        if not shape or (len(shape) != 1 and not self.layer):
            raise SigmaNetworkError(f"target_maximisation: the output has shape {shape}; expected (outputs,).")
        chosen = range(shape[0]) if self.outputs is None else self.outputs
        wrong = [output for output in chosen if not 0 <= output < shape[0]]
        if wrong:
            raise SigmaConfigError(f"target_maximisation.outputs: must be from 0 to {shape[0] - 1} (got {wrong[0]}).")
        return chosen

    def climb(self, context: HookContext, outputs: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return one sample per output, and the value of that output for it."""
        inputs, row = self._ends(context)
        draws = np.random.Generator(np.random.Philox(self.seed))
        samples = draws.normal(scale=START, size=(len(outputs), *inputs.shape)).astype(inputs.dtype)
        along = np.zeros((len(outputs), *row.shape), row.dtype)
        for place, output in enumerate(outputs):
            along[place, output] = 1.0 / prod(row.shape[1:])
        excite = partial(context.excite, layer=self.layer, section=self.section, given=self.given)
        for _ in range(self.steps):
            _, slopes = excite(samples, along)
            samples = self._step(samples, slopes)
        reached = excite(samples, along)[0] * along
        return samples, reached.reshape(len(outputs), -1).sum(axis=1)

    def _step(self, samples: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        slopes = slopes - self.l2 * samples
        size = np.sqrt(np.mean(np.square(slopes), axis=tuple(range(1, slopes.ndim)), keepdims=True))
        moved = samples + self.rate * slopes / np.where(size == 0, 1, size)
        bounded = moved if self.low is None and self.high is None else np.clip(moved, self.low, self.high)
        return bounded.astype(samples.dtype)

    def _write(self, context: HookContext, output: int, picture: PictureValue) -> None:
        name = file_name(self.name, context, {"output": output, "layer": self.layer})
        path = context.write(f"{self.folder}/{name}", picture.enlarge(self.zoom).encode())
        if path is not None:
            context.log(f"output {output}: the input that maximises it is drawn in {path}")

    def _sides(self, sample: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a sample as an image."""
        sides = sample if self.shape is None else tuple(self.shape)
        if prod(sides) != prod(sample):
            raise SigmaConfigError(f"target_maximisation.shape: {sides} does not have {prod(sample)} elements.")
        if len(sides) not in (2, 3) or (len(sides) == 3 and sides[0] not in (1, 3)):
            raise SigmaNetworkError(
                f"target_maximisation: an input of shape {sample} is not an image. Set shape = [height, width]."
            )
        return sides
