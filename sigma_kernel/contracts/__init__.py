"""What a plugin can offer: one small abstract class for every kind of component.

A plugin author reads this folder and nothing else of the kernel.  Each class says what the kernel calls and what it
promises in return; the conformance suites in :mod:`sigma_kernel.testing` check the other direction.  Components are
attrs classes whose fields are their settings; a field made by :func:`live` can be changed while a run goes on.
"""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "compute": "Array Backend Batches Burst LoopProgram Program Share Step",
        "data": "Dataset Extractor Iterator Preprocessor Reader Source",
        "model": "Architecture Context CostLayer Draws Initialiser Layer Outputs Parameter Totals live",
        "optimisation": "GradientOptimiser Modifier Objective Optimiser Schedule Slot Transform Update",
        "steering": "Compute Hook HookContext Iterations Merger Metric Monitor Operator Outlook Recipe View Work",
    },
)
