# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_operator_local.local import LocalOperator as LocalOperator
from sigma_operator_local.mergers import Largest as Largest
from sigma_operator_local.mergers import MeanOfShards as MeanOfShards
from sigma_operator_local.mergers import MergerRules as MergerRules
from sigma_operator_local.mergers import Sum as Sum
from sigma_operator_local.mergers import Weighted as Weighted
