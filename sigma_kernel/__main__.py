"""``python -m sigma_kernel`` works wherever the ``sigma`` script does."""

import sys

from sigma_kernel.launcher import main

if __name__ == "__main__":
    sys.exit(main())
