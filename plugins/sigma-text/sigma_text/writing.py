"""Continue a text: draw each character or token from the network's prediction after the previous ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.contracts import Step, TextGenerator
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph.node import Spec
from sigma_kernel.graph.random import Draw
from sigma_kernel.settings import is_finite, is_whole, seed as as_seed
from sigma_step.drafts import simplified_step
from sigma_step.model import LAYERS, Model
from sigma_step.steps import Steps
from sigma_text.continued import Continued
from sigma_text.vocabularies import Vocabulary, read_vocabulary
from sigma_training.data.preprocessing import conform
from sigma_training.evaluator import Evaluator

MEMORY, POSITION = "memory.", "position"  # in the state and among the live values of a step
STREAM = 0xFFFF_FF20  # of random numbers


def next_entry(model: Model) -> Step:
    """Return the step that predicts the next entry of a sequence, and its layers' new memory."""
    about = model.network, model.shapes, model.sections, model.precision, model.resolve
    piece = Continued.from_network(*about, rewritings=model.rewritings)
    sections, memory = model.network.sections(costs=False), [MEMORY + address for address in piece.memory]
    names = (*sections, POSITION, *(LAYERS + address for address in piece.values), *memory)
    state = dict(zip(names, piece.graph.inputs, strict=True))
    data = {name: state.pop(name) for name in sections}
    steer = {name: state.pop(name) for name in (POSITION, *(LAYERS + address for address in model.shapes.live))}
    outputs = dict(zip((*piece.outputs, *memory), piece.graph.outputs, strict=True))
    return simplified_step(model, state, data, steer, {name: outputs.pop(name) for name in memory}, outputs)


@define(eq=False)
class TextWriter:
    """A network that continues a text: it keeps its layers' memory of the characters so far.

    Layers that depend on positions, as attention does, remember at most a window. When it is full, the text is read
    again from half a window before its end.
    """

    steps: Steps
    evaluator: Evaluator
    start: int = field(default=0, init=False)  # of the memory
    done: int = field(default=0, init=False)
    memory: dict[str, Any] = field(factory=dict, init=False)

    def predict_next(self, codes: Sequence[int]) -> Mapping[str, np.ndarray]:
        """Return the predictions of the character after a text, by output; only its new characters are read."""
        model, place = self.steps.programs.model, self.steps.programs.backend.to_device
        step, program = self.steps.programs.get(next_entry)
        ((name, spec),) = ((name, model.sections[name]) for name in step.data)
        if POSITION in step.steer and len(codes) - self.start > spec.shape[0]:
            self.start = self.done = len(codes) - max(1, spec.shape[0] // 2)
        if self.start == self.done:
            inputs = zip(step.state, step.graph.inputs, strict=False)
            self.memory = {n: place(np.zeros(x.shape, x.dtype)) for n, x in inputs if n.startswith(MEMORY)}
        new = self.evaluator.prepare({name: np.array(codes[self.done :], np.int32)[:, None]})
        block = conform(new, {name: Spec((1, *spec.shape[1:]), spec.dtype)}, "generate")
        rows = np.arange(len(codes) - self.done, dtype=np.int32)
        steer = {**self.steps.steer(step, len(rows)), POSITION: rows + np.int32(self.done - self.start)}
        now = {n: steer[n] for n in step.steer}
        there = {**self.steps.arrays, **self.memory}
        burst = program.run(there, {n: place(x) for n, x in block.items()}, rows[:, None], now, len(rows))
        self.memory, self.done = {n: burst.state[n] for n in self.memory}, len(codes)
        return {n: values[-1].reshape(-1) for n, values in burst.ring.items()}


@frozen
class CharacterGenerator(TextGenerator):
    """Continue a text character by character, or token by token, as the network was trained.

    At ``temperature`` 0, it is the most probable one, the first of equal ones. Otherwise they are drawn from the
    probabilities to the power of ``1 / temperature``, by random numbers of the ``seed``.
    """

    def continuation(
        self, steps: Steps, evaluator: Evaluator, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0
    ) -> Iterator[str]:
        """Return the continuation of a text, piece by piece: of ``length`` characters or tokens, or up to its end.

        An unknown token is never drawn.  Raises SigmaConfigError for wrong settings, SigmaDataError for unknown
        characters, SigmaNetworkError for a network that was not trained on text, or does not continue any.
        """
        vocabulary, output = _learned_vocabulary(steps.programs.model, evaluator.learned)
        if not is_whole(length, 0):
            raise SigmaConfigError(f"generate: length must be a whole number from 0 on (got {length!r}).")
        if not is_finite(temperature) or temperature < 0:
            raise SigmaConfigError(f"generate: temperature must be a number from 0 on (got {temperature!r}).")
        if not isinstance(text, str) or not text:
            raise SigmaDataError(f"generate: the text must be a string of at least one character (got {text!r}).")
        codes, draw = vocabulary.encode(text), Draw(as_seed(seed), STREAM)
        writer = TextWriter(steps, evaluator)

        def draw_codes() -> Iterator[int]:
            for _ in range(length):
                probabilities = writer.predict_next(codes)[output][: len(vocabulary)]
                code = _draw_index(probabilities, temperature, draw, vocabulary.unknown)
                if code == vocabulary.end:
                    return
                yield code

        return vocabulary.stream(codes, draw_codes())


def _learned_vocabulary(model: Model, learned: Mapping[str, Any]) -> tuple[Vocabulary, str]:
    """Return what a network has learned to write, and the output that predicts it."""
    sections, outputs = model.network.sections(costs=False), model.network.choosing()
    if len(sections) > 1:
        raise SigmaNetworkError(
            f"generate: the network reads {', '.join(sections)}. Only one with one input continues a text. With an "
            "encoder and a decoder, extend the target by predict: choose its next entry, append it, and predict again."
        )
    vocabulary = read_vocabulary(learned)
    if vocabulary is None or not outputs:
        raise SigmaNetworkError(
            "generate: the network has not learned to predict characters. Train it on text: dataset = 'text', with "
            "embedding(...) + lstm(128, sequence=true) + output(...) + softmax_cross_entropy()."
        )
    return vocabulary, outputs[0]


def _draw_index(probabilities: np.ndarray, temperature: float, draw: Draw, never: int | None = None) -> int:
    if not np.isfinite(probabilities).all():
        raise SigmaNetworkError("generate: predictions are not finite. Train with other settings, or a nan_guard.")
    if never is not None:
        probabilities = np.where(np.arange(len(probabilities)) == never, 0, probabilities)
    if temperature == 0:
        return int(probabilities.argmax())
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(probabilities, dtype=np.float64)
        upto = np.cumsum(np.exp((logs - logs.max()) / temperature))
    return min(int(np.searchsorted(upto, draw.uniform(()) * upto[-1], side="right")), int(upto.argmax()))
