# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_operator_local.local import LocalOperator as LocalOperator
from sigma_operator_local.mergers import Sum as Sum
