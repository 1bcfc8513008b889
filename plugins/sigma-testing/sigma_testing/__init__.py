"""Conformance suites, one per kind of component, as classes to inherit in a plugin's tests; and what tests need.

That is: samples of every op, small networks and environments, hooks and operators to test others with, a backend that
computes nothing, and checkpoints with given arrays.
"""

import sys

from sigma_kernel.lazy import lazy_exports

MODULES = {
    "augmentations": "AugmentationSuite",
    "backend": "BackendSuite LoweringSuite",
    "cases": "Sample samples",
    "charts": "ChartSuite",
    "checkpoints": "save_checkpoint saved_scores",
    "commanding": "CommandSuite",
    "configurations": "ConfigurationSuite",
    "criteria": "CriterionSuite",
    "counting": "TWICE growth",
    "data": "DatasetSuite PreprocessorSuite SourceSuite",
    "determinism": "DeterministicSuite",
    "doing": "Do",
    "encoders": "EncoderSuite",
    "exporters": "ExporterSuite inference",
    "functions": "ActivationSuite OpSuite",
    "generators": "GeneratorSuite",
    "group.asynchronous": "AsynchronousSimulation simulate_asynchronous_group",
    "group.checks": "InvariantError",
    "group.schedules": "FaultSchedule WorkerFault draw_schedule",
    "group.simulation": "GroupSimulation simulate_group",
    "hooks": "HookSuite small_classifier small_regression",
    "initialisers": "InitialiserSuite RandomInitialiserSuite distance draw",
    "inspectors": "InspectorSuite",
    "launching": "VerbSuite RecipeSuite",
    "layers": "CostSuite LayerSuite by_name trace_layer",
    "metrics": "MergerSuite MetricSuite",
    "memory": "MemoryStore",
    "null": "NullBackend",
    "optimisers": "Bowl GradientOptimiserSuite ModifierSuite OptimiserSuite START ScheduleSuite TransformSuite"
    " Trial small_network"
    " transform_gradients",
    "plugin": "PluginSuite fresh_catalogue",
    "records": "ExtractorSuite IteratorSuite Memory ReaderSuite",
    "rewritings": "RewritingSuite",
    "suite": "Suite",
    "stores": "StoreSuite",
    "steering": "Descent Desk Note OperatorSuite Slow Sweep small_environment state_bytes",
    "trainers": "TrainerSuite",
    "transports.driving": "ToyRun",
    "transports.suite": "TransportSuite",
    "transports.toy": "ToyBlueprint",
    "transports.training": "GroupTrainingSuite",
    "watching": "FakeTrainerView FakeView MonitorSuite PanelSuite ViewSuite",
}
if "pytest" in sys.modules:  # its failures then show the values that were compared
    sys.modules["pytest"].register_assert_rewrite(*(f"{__name__}.{module}" for module in MODULES))

__getattr__, __dir__, __all__ = lazy_exports(__name__, MODULES)
