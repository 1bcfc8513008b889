"""The package for users of Sigma: ``import sigma_ml as sm``.

It has the names of ``sigma_kernel``, the components of the default rooms in modules such as ``sm.layers``, and
:func:`sm.from_file`. Each is imported when it is first used.
"""

from types import SimpleNamespace

import sigma_kernel
from sigma_kernel import __version__ as __version__, lazy_exports

PATHS = (
    *(f"sigma_kernel:{name}" for name in sigma_kernel.__all__),
    *(f"sigma_run:{name}" for name in ("Trained", "describe", "fork", "from_file", "load", "recall")),
    "sigma_step:Model",
    *(f"sigma_training:{name}" for name in ("History", "minimise")),
    "sigma_monitor_web.notebook:watch",
    "sigma_initialisers:read_saved",
    "sigma_initialisers:saved_parameters",
    "sigma_text:Continued",
)
__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {"": "data hooks initialisers layers optimisers text", "searching": "search"},
    [SimpleNamespace(path=path) for path in PATHS],
)
