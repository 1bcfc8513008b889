"""Estimators of scikit-learn that train networks of Sigma."""

from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"estimators": "SigmaClassifier SigmaRegressor"})
