"""1-D convolution over signals, channels first."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_layers.convolutions import Convolution


@define(eq=False)
class Conv1d(Convolution):
    """Convolve signals with filters: ``Conv1d(32, 3, padding="same", activation="relu")``.

    Computes ``activation(weights * x + biases)``, where ``*`` is a cross-correlation, as in other frameworks.
    Weights are initialised by ``glorot_uniform``, biases with 0.

    Channels come first; ``Permute(2, 1)`` turns a sequence ``(time, features)`` into such a signal.

    Shapes: ``(batch, channels, length)`` -> ``(batch, filters, length')``, each n becoming ``(n + 2 * padding -
    dilation * (size - 1) - 1) // stride + 1``; weights ``(filters, channels // groups, size)``, biases
    ``(filters,)``.

    Waibel, Hanazawa, Hinton, Shikano and Lang, Phoneme Recognition Using Time-Delay Neural Networks, 1989.
    """

    rank: ClassVar[int] = 1
    called: ClassVar[str] = "conv1d"
