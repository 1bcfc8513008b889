# Generated: python -m sigma_kernel.testing.generate
# ruff: noqa
from sigma_optimisers.adadelta import Adadelta as Adadelta
from sigma_optimisers.adagrad import Adagrad as Adagrad
from sigma_optimisers.adam import Adam as Adam
from sigma_optimisers.adamw import AdamW as AdamW
from sigma_optimisers.clip import Clip as Clip
from sigma_optimisers.clip_global_norm import ClipGlobalNorm as ClipGlobalNorm
from sigma_optimisers.clip_norm import ClipNorm as ClipNorm
from sigma_optimisers.clip_value import ClipValue as ClipValue
from sigma_optimisers.constant import ConstantFactor as ConstantFactor
from sigma_optimisers.cosine import Cosine as Cosine
from sigma_optimisers.cyclic import Cyclic as Cyclic
from sigma_optimisers.exponential import Exponential as Exponential
from sigma_optimisers.gradient_descent import GradientDescent as GradientDescent
from sigma_optimisers.l1 import L1 as L1
from sigma_optimisers.l2 import L2 as L2
from sigma_optimisers.max_norm import MaxNorm as MaxNorm
from sigma_optimisers.momentum import Momentum as Momentum
from sigma_optimisers.nesterov import Nesterov as Nesterov
from sigma_optimisers.one_cycle import OneCycle as OneCycle
from sigma_optimisers.product import Product as Product
from sigma_optimisers.rmsprop import RMSprop as RMSprop
from sigma_optimisers.scale import ScaleParameter as ScaleParameter
from sigma_optimisers.step import StepDecay as StepDecay
from sigma_optimisers.warm_up import WarmUp as WarmUp
