# Generated: python -m sigma_kernel.testing.generate
# ruff: noqa
from sigma_kernel.testing.backend import BackendSuite as BackendSuite
from sigma_kernel.testing.backend import LoweringSuite as LoweringSuite
from sigma_kernel.testing.data import DatasetSuite as DatasetSuite
from sigma_kernel.testing.data import PreprocessorSuite as PreprocessorSuite
from sigma_kernel.testing.data import SourceSuite as SourceSuite
from sigma_kernel.testing.initialisers import InitialiserSuite as InitialiserSuite
from sigma_kernel.testing.initialisers import RandomInitialiserSuite as RandomInitialiserSuite
from sigma_kernel.testing.layers import CostSuite as CostSuite
from sigma_kernel.testing.layers import LayerSuite as LayerSuite
from sigma_kernel.testing.null import NullBackend as NullBackend
from sigma_kernel.testing.optimisers import GradientOptimiserSuite as GradientOptimiserSuite
from sigma_kernel.testing.optimisers import OptimiserSuite as OptimiserSuite
from sigma_kernel.testing.optimisers import ScheduleSuite as ScheduleSuite
from sigma_kernel.testing.optimisers import TransformSuite as TransformSuite
from sigma_kernel.testing.plugin import PluginSuite as PluginSuite
from sigma_kernel.testing.samples import Sample as Sample
from sigma_kernel.testing.steering import HookSuite as HookSuite
from sigma_kernel.testing.steering import MonitorSuite as MonitorSuite
from sigma_kernel.testing.steering import OperatorSuite as OperatorSuite
