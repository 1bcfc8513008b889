"""Runs Sigma's trainers on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigma_operator_local.local import LocalOperator as LocalOperator

__all__ = ["LocalOperator"]


def __getattr__(name: str) -> Any:
    if name != "LocalOperator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sigma_operator_local import local

    return local.LocalOperator
