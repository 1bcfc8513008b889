"""Check workers before training, over the transport of a configuration's operator, and plan how many to take."""

from sigma_cluster.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "checking": "ClusterReport WorkerReport check_cluster",
        "planning": "StepCosts WorkerPlan plan_workers",
    },
    components=sigma_components(),
)
