"""Say in a sentence if a network is no better than a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

SIMPLE = (
    "which does not look at the inputs. Check that inputs and targets belong together, change the learning rate, or "
    "train longer."
)
LINEAR = (
    "so that a network without hidden layers would do as well. Change the learning rate, train longer, or add units, "
    "if the data have more to learn from."
)
SIMPLE_TOO = "which does not look at the inputs, so that this split does not tell what the network has learned."
LINEAR_TOO = "so that the data need no hidden layers."


def compare_baselines(
    measured: Mapping[str, float],
    baselines: Mapping[str, Mapping[str, float]],
    direction: Callable[[str], str],
) -> Iterator[str]:
    """Yield a sentence for each split on which the network is no better than its best baseline.

    They are compared by the first metric of which it is known which values are better, or else by the loss.
    """
    addresses = list(dict.fromkeys(address for values in baselines.values() for address in values))
    for on in dict.fromkeys(address.partition(".")[0] for address in addresses):
        there = [address for address in addresses if address.startswith(f"{on}.") and address in measured]
        directed = [address for address in there if direction(address) in ("higher", "lower")]
        directed.sort(key=lambda address: address.split(".")[1] in ("loss", "cost"))  # which is stable
        if directed:
            yield from _compare_one(directed[0], measured[directed[0]], baselines, direction(directed[0]))


def _compare_one(
    address: str, value: float, baselines: Mapping[str, Mapping[str, float]], direction: str
) -> Iterator[str]:
    sign = 1.0 if direction == "higher" else -1.0
    values = {name: own[address] for name, own in baselines.items() if address in own}
    best = max(values, key=lambda name: sign * values[name])
    what = "a linear model" if best == "linear" else f"the baseline {best!r}"
    if value == values[best] == (1.0 if sign > 0 else 0.0):  # the best that shares and errors can be
        yield f"{address} is {value:.4g}, and so is that of {what}, {LINEAR_TOO if best == 'linear' else SIMPLE_TOO}"
    elif not sign * value > sign * values[best]:  # nor if it is not a number
        remedy = LINEAR if best == "linear" else SIMPLE
        yield f"{address} is {value:.4g}, no better than {values[best]:.4g} of {what}, {remedy}"
