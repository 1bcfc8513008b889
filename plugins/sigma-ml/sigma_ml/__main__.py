"""``python -m sigma_ml``: the command ``sigma``."""

from sigma_run.__main__ import start

if __name__ == "__main__":
    start()
