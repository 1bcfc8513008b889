"""Public conformance suites: what every component of a kind must do, as classes to inherit in a plugin's tests."""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "backend": "BackendSuite LoweringSuite",
        "data": "DatasetSuite PreprocessorSuite SourceSuite",
        "initialisers": "InitialiserSuite RandomInitialiserSuite",
        "layers": "CostSuite LayerSuite",
        "null": "NullBackend",
        "optimisers": "GradientOptimiserSuite OptimiserSuite ScheduleSuite TransformSuite",
        "plugin": "PluginSuite",
        "samples": "Sample",
        "steering": "HookSuite MonitorSuite OperatorSuite",
    },
)
