"""Parameter modifier: an exponential moving average of the weights, to evaluate with."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Modifier, Objective, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Average(Modifier):
    """Average the matching parameters over the updates: ``a <- decay * a + (1 - decay) * p``, at first ``a <- p``.

    Training does not see the average. Evaluation, prediction and export do, by the name of the modifier:
    ``sigma evaluate RUN --weights average``, ``load(RUN, weights="average")``, ``trainer.evaluate(weights="average")``,
    and the setting ``weights`` of the hook ``evaluate`` and of those for single metrics.  Before the first update the
    average is the parameter.  It is in checkpoints.  Modifiers listed before it act on what is averaged. Layer state,
    such as that of a batch norm, is not averaged, and neither are parameters that do not match.

    Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992; same as
    ``torch.optim.swa_utils.AveragedModel`` with ``get_ema_multi_avg_fn``.

    Args:
        decay: Share of the average that is kept in a step; the average is over some ``1 / (1 - decay)`` steps.
    """

    decay: float = live(0.999, low=0.0, high=1.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the average, and the number of updates that it is over."""
        return {"weights": Slot(), "count": Slot(0.0, (), "int32")}

    def apply(self, parameter: Node, address: str, objective: Objective, owner: str) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter as it is, and the new average."""
        before, count = (objective.slot(address, f"{owner}.{name}") for name in ("weights", "count"))
        decay = f.where(f.equal(count, 0), 0.0, objective.setting(owner, "decay"))
        return parameter, {"weights": decay * before + (1.0 - decay) * parameter, "count": count + 1}
