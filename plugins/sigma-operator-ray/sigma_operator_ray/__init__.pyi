# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_operator_ray.operator import RayOperator as RayOperator
