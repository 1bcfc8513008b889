"""The kernel of Sigma: registries, time scales, the computation graph, the lifecycle and the plugin machinery."""

from sigma_kernel import contracts
from sigma_kernel.lazy import lazy_exports

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "clock": "after between every",
        "contracts": " ".join(contracts.__all__),
        "criteria": "when",
        "environment": "Environment",
        "errors": "SigmaAddressError SigmaCheckpointError SigmaConfigError SigmaDataError SigmaError SigmaGraphError"
        " SigmaNetworkError SigmaPluginError SigmaStateError SigmaTrainingError",
        "graph": "functions",
        "graph.node": "Node Spec",
        "inference": "load",
        "lazy": "lazy_exports",
        "minimisation": "minimise",
        "plugins.catalogue": "Lowerings",
        "plugins.specs": "Component hookimpl",
        "registry.registry": "Registry",
    },
)
