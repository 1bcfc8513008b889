# Generated: python -m sigma_testing.generate
# ruff: noqa
from acme_kinds.count_lows import CountLows as CountLows
from acme_kinds.fading import Fading as Fading
from acme_kinds.filled import Filled as Filled
from acme_kinds.hail_command import hail as hail
from acme_kinds.halves import Halves as Halves
from acme_kinds.in_range import InRange as InRange
from acme_kinds.lines import Lines as Lines
from acme_kinds.mean_deviation import MeanDeviation as MeanDeviation
from acme_kinds.short_xor_recipe import short_xor as short_xor
from acme_kinds.sign_steps import SignSteps as SignSteps
from acme_kinds.squash_op import squash as squash
from acme_kinds.stretch import Stretch as Stretch
