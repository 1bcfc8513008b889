# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_operator_mpi.operator import MpiOperator as MpiOperator
