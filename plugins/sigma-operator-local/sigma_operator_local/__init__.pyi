# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_operator_local.local import LocalOperator as LocalOperator
from sigma_operator_local.mergers import Largest as Largest
from sigma_operator_local.mergers import Mean as Mean
from sigma_operator_local.mergers import Several as Several
from sigma_operator_local.mergers import Sum as Sum
from sigma_operator_local.mergers import Weighted as Weighted
