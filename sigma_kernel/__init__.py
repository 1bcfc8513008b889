"""The kernel of Sigma: registries, time scales, the computation graph, the lifecycle and the plugin machinery."""

from sigma_kernel import contracts
from sigma_kernel.lazy import lazy_exports
from sigma_kernel.systems import check_system

check_system()
__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "": "functions",
        "arrays": "as_array as_numpy read_only",
        "clock": "COUNTED Moment TimeScale TimeStep after between duration every",
        "contracts": " ".join(contracts.__all__),
        "courses": "TrainingHandle",
        "criteria": "when",
        "environment": "Environment",
        "errors": "SigmaAddressError SigmaCheckpointError SigmaConfigError SigmaDataError SigmaError SigmaGraphError"
        " SigmaMemoryError SigmaNetworkError SigmaPluginError SigmaStateError SigmaTrainingError SigmaWarning",
        "graph.node": "Node Spec",
        "lazy": "lazy_exports",
        "network.architecture": "Placed",
        "network.network": "Network",
        "network.tracing": "Trace",
        "plugins.catalogue": "Lowerings catalogue",
        "plugins.specs": "Component RunOption hookimpl",
        "registry.addresses": "matches",
        "registry.registry": "Registry",
        "views": "EnvironmentView",
    },
)
