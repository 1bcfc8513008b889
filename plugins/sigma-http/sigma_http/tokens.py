"""Tokens: given by a user, taken from the environment, or made of random bits."""

from __future__ import annotations

import os
import secrets

from sigma_kernel.errors import SigmaConfigError

SHORTEST = 16  # characters of a token
BYTES = 32  # of a key


def generate_key() -> str:
    """Return a new key of 256 random bits."""
    return secrets.token_urlsafe(BYTES)


def check_token(where: str, token: str) -> None:
    """Raise SigmaConfigError unless a setting is empty, the name of an environment variable, or a usable token."""
    if not isinstance(token, str):
        raise SigmaConfigError(f"{where}: must be a string (got {type(token).__name__}).")
    if (
        token
        and not token.startswith("$")
        and (len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token)
    ):
        raise SigmaConfigError(f"{where}: must have at least {SHORTEST} letters, digits and signs.")


def read_token(where: str, token: str) -> str:
    """Return a token; ``$NAME`` is that in an environment variable.

    Raises SigmaConfigError if the environment variable is missing or too short.
    """
    if not token.startswith("$"):
        return token
    key = os.environ.get(token[1:], "")
    if len(key) < SHORTEST:
        raise SigmaConfigError(
            f"{where}: the environment variable {token[1:]} must have at least {SHORTEST} characters "
            f"(it has {len(key)}). Set it before the run."
        )
    return key
