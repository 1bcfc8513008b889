# Generated: python -m sigma_kernel.testing.generate
# ruff: noqa
from sigma_sklearn.estimators import SigmaClassifier as SigmaClassifier
from sigma_sklearn.estimators import SigmaRegressor as SigmaRegressor
