"""Train on the backend numpy where a test names none: it has nothing to compile."""

import os

os.environ.setdefault("SIGMA_BACKEND", "numpy")
