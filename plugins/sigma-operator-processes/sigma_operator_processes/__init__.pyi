# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_operator_processes.processes import ProcessesOperator as ProcessesOperator
