"""ONNX's attention, in functions of the graph."""

from __future__ import annotations

from typing import Any

from sigma_kernel import functions as f
from tests.peers.onnx_nodes.reading import OutOfScopeError, Table

ATTENTION = Table()
row = ATTENTION.row


def _heads(x: Any, count: int | None) -> Any:
    """Return ``(batch, heads, length, size)``."""
    if len(x.shape) == 4:
        return x
    batch, length, width = x.shape
    return f.permute(f.reshape(x, (batch, length, count, width // (count or 1))), (0, 2, 1, 3))


def _repeated(x: Any, heads: int) -> Any:
    """Return keys or values of grouped heads, one for each query head."""
    batch, count, length, size = x.shape
    wide = f.stretch(f.reshape(x, (batch, count, 1, length, size)), (batch, count, heads // count, length, size))
    return f.reshape(wide, (batch, heads, length, size))


def _allowed(queries: int, keys: int, offset: Any, causal: int, left: int, right: int) -> Any:
    """Return bool masks that broadcast to ``(batch, heads, queries, keys)``; query i is at position ``i + offset``."""
    rows, columns = f.iota((queries, keys), 0) + offset, f.iota((queries, keys), 1)
    masks = [columns <= rows] if causal else []
    masks += [columns >= rows - left] if left >= 0 else []
    return masks + ([columns <= rows + right] if right >= 0 else [])


def _refuse(mask: Any, softcap: float, others: dict[str, Any]) -> None:
    reasons = {
        "a mask that is added": mask is not None and str(mask.dtype) != "bool",
        "softcap": bool(softcap),
        "scores as an output": "qk_matmul_output_mode" in others,
        "a precision of its own": "softmax_precision" in others,
    }
    for what in (text for text, present in reasons.items() if present):
        raise OutOfScopeError("a mode of an operator", f"Attention with {what}")


@row("Attention")
def _attention(
    q: Any, k: Any, v: Any, mask: Any = None, past_key: Any = None, past_value: Any = None, lengths: Any = None,
    is_causal: int = 0, q_num_heads: int | None = None, kv_num_heads: int | None = None, scale: float | None = None,
    softcap: float = 0.0, left_window_size: int = -1, right_window_size: int = -1, **others: Any,
) -> Any:  # fmt: skip
    _refuse(mask, softcap, others)
    flat = len(q.shape) == 3
    q, k, v = _heads(q, q_num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    keys = k if past_key is None else f.concat(past_key, k, axis=2)
    values = v if past_value is None else f.concat(past_value, v, axis=2)
    before = 0 if past_key is None else past_key.shape[2]
    if lengths is not None:
        lengths = f.reshape(f.cast(lengths, "int32"), (-1, 1, 1, 1))
        before = lengths - q.shape[2]
    masks = _allowed(q.shape[2], keys.shape[2], before, is_causal, left_window_size, right_window_size)
    masks += [] if lengths is None else [f.iota((1, keys.shape[2]), 1) < lengths]
    if mask is not None:
        missing = keys.shape[2] - mask.shape[-1]
        masks.append(f.concat(mask, f.zeros((*mask.shape[:-1], missing), "bool")) if missing else mask)
    allowed = None
    for one in masks:
        allowed = one if allowed is None else f.logical_and(allowed, one)
    scaled = q if scale is None else q * (scale * q.shape[-1] ** 0.5)
    heads = q.shape[1]
    made = f.attention(scaled, _repeated(keys, heads), _repeated(values, heads), allowed)
    if flat:
        made = f.permute(made, (0, 2, 1, 3))
        made = f.reshape(made, (*made.shape[:2], -1))
    return made, keys, values
