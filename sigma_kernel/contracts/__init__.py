"""What a plugin can offer: one small abstract class for every kind of component.

A plugin author reads this folder and nothing else of the kernel.  Each class says what the kernel calls and what it
promises in return; the conformance suites in :mod:`sigma_kernel.testing` check the other direction.  Components are
attrs classes whose fields are their settings; a field made by :func:`live` can be changed while a run goes on.
"""

from sigma_kernel.contracts.compute import Array, Backend, Burst, LoopProgram, Program, Step
from sigma_kernel.contracts.data import Dataset, Extractor, Order, Preprocessor, Reader, Source
from sigma_kernel.contracts.model import (
    Architecture,
    Context,
    CostLayer,
    Draws,
    Initialiser,
    Layer,
    Outputs,
    Parameter,
    Totals,
    live,
)  # fmt: skip
from sigma_kernel.contracts.optimisation import (
    GradientOptimiser,
    Modifier,
    Objective,
    Optimiser,
    Schedule,
    Slot,
    Transform,
    Update,
)  # fmt: skip
from sigma_kernel.contracts.steering import Hook, HookContext, Merger, Metric, Monitor, Operator, Outlook, Recipe, View

__all__ = [
    "Architecture", "Array", "Backend", "Burst", "Context", "CostLayer", "Dataset", "Draws", "Extractor",
    "GradientOptimiser", "Hook", "HookContext", "Initialiser", "Layer", "LoopProgram", "Merger", "Metric", "Modifier",
    "Monitor", "Objective", "Operator", "Optimiser", "Order", "Outlook", "Outputs", "Parameter", "Preprocessor",
    "Program", "Reader", "Recipe", "Schedule", "Slot", "Source", "Step", "Totals", "Transform", "Update", "View",
    "live",
]  # fmt: skip
