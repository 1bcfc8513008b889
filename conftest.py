"""Train on the backend numpy where a test names none: it has nothing to compile.

No run is steered from other shells, but where a test is about that.
"""

import os

os.environ.setdefault("SIGMA_BACKEND", "numpy")
os.environ.setdefault("SIGMA_CONTROL", "off")
