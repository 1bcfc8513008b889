# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_sklearn.estimators import SigmaClassifier as SigmaClassifier
from sigma_sklearn.estimators import SigmaRegressor as SigmaRegressor
