"""Requests about layers: their parameters, filters and activations; pictures by hooks."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sigma_kernel.contracts import LayerEntry, View
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, suggest_name
from sigma_monitor_control.protocol.data import check_rows, iteration, row_of, samples, sections
from sigma_monitor_control.protocol.pictures import is_picture, picture
from sigma_monitor_control.protocol.reading import Later, select_trainer
from sigma_monitor_control.protocol.values import column, summary, to_json

BINS = 30
MOST_FILTERS = 64  # pictures of one layer
MOST_VALUES = 4096  # of one layer
MOST_FILES, LARGEST = 50, 1 << 20  # pictures in the run folder, and bytes of each


def layer(view: View, layer: str, trainer: str | None = None) -> Later:
    """Return histograms of a layer's parameters, of gradients and updates published by hooks, and its filters."""
    name = select_trainer(view, trainer)
    entry = _find_layer(view, name, layer)
    return Later(lambda: _layer(view, name, entry))


def _find_layer(view: View, trainer: str, layer: str) -> LayerEntry:
    """Return a layer; raise SigmaAddressError if it does not exist."""
    entries = {entry.name: entry for entry in view.trainer(trainer).network()}
    if layer not in entries:
        raise SigmaAddressError(f"layer {layer!r:.100}: no such layer.{suggest_name(layer, entries, 'There is')}")
    return entries[layer]


def _layer(view: View, trainer: str, layer: LayerEntry) -> dict[str, Any]:
    arrays = {address: np.asarray(view.get(address)) for address in layer.parameters}
    parameters = {address: {**summary(values), "histogram": histogram(values)} for address, values in arrays.items()}
    published = {
        kind: _published_histograms(view, trainer, kind, layer.name) for kind in ("gradients", "updates", "activations")
    }
    filters = [image for values in arrays.values() for image in _filters(values, sections(view, trainer).values())]
    return {"at": iteration(view, trainer), "parameters": parameters, **published, "filters": filters[:MOST_FILTERS]}


def histogram(values: np.ndarray) -> dict[str, Any]:
    """Return the counts of the finite elements of an array between edges, of which there is one more."""
    finite = values[np.isfinite(values)].astype(np.float64)
    counts, edges = np.histogram(finite, BINS)
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _published_histograms(view: View, trainer: str, kind: str, layer: str) -> dict[str, Any]:
    """Return the histograms that hooks have published of a layer, by address."""
    head, histograms = f"{trainer}.histogram.{kind}.", dict[str, Any]()
    for edges, values in view.find(f"{head}**.edges"):
        address = edges.removesuffix(".edges")
        if layer in address.removeprefix(head).split("."):
            counts = dict(view.find(f"{address}.counts")).get(f"{address}.counts", [])
            histograms[address] = {"histogram": {"edges": to_json(values), "counts": to_json(counts)}}
    return histograms


def _filters(values: np.ndarray, inputs: Any) -> Iterator[dict[str, Any]]:
    """Yield the filters of a convolution, or the weights of units over a picture, as pictures of one scale."""
    kernels: np.ndarray | None = None
    if values.ndim == 4:
        kernels = values if values.shape[1] in (1, 3) else values.mean(1)
    elif values.ndim == 2:
        shape = next((size for size in inputs if is_picture(size) and np.prod(size) == len(values)), None)
        kernels = None if shape is None else values.T.reshape(-1, *shape)
    if kernels is not None and is_picture(kernels.shape[1:]):
        yield from _signed_pictures(kernels)


def _signed_pictures(found: np.ndarray) -> list[dict[str, Any]]:
    """Return arrays as pictures of one scale, whose middle is 0."""
    finite = np.abs(found[np.isfinite(found)])
    most = float(finite.max()) if finite.size else 1.0
    return [picture(kernel, -most, most) for kernel in found[:MOST_FILTERS]]


def activations(
    view: View,
    layer: str,
    inputs: dict[str, Any] | None = None,
    split: str | None = None,
    row: int | None = None,
    trainer: str | None = None,
) -> Later:
    """Return a layer's activations for one sample, given by section as in ``predict``, or a row of a split."""
    name = select_trainer(view, trainer)
    _find_layer(view, name, layer)
    if inputs is not None:
        return Later(lambda: _activations(view, name, layer, samples(view, name, inputs)))
    if split is None or row is None:
        raise SigmaConfigError("activations: needs a sample. Give its 'inputs', or a 'split' and a 'row' of it.")
    check_rows(view, name, split, [row])
    return Later(lambda: _activations(view, name, layer, row_of(view, name, split, row)))


def _activations(view: View, trainer: str, layer: str, sample: Mapping[str, np.ndarray]) -> dict[str, Any]:
    outputs = view.trainer(trainer).activations(sample)
    if layer not in outputs:
        raise SigmaConfigError(f"activations: {layer!r} is a cost, without activations. Choose a layer before it.")
    values = np.asarray(outputs[layer][0], np.float64)
    planes = values[None] if values.ndim == 2 else values
    drawable = planes.ndim == 3 and is_picture(planes.shape[1:])
    shown = {"pictures": _signed_pictures(planes)} if drawable else {"values": column(values.reshape(-1)[:MOST_VALUES])}
    about = {"at": iteration(view, trainer), "size": values.size, "silent": int((values == 0).sum())}
    return {"pictures": [], "values": [], **summary(values), **about, **shown}


MEDIA = "media"  # the folder of what hooks publish, which has a lane of its own


def pictures(view: View, trainer: str | None = None) -> Later:
    """Return the pictures that hooks have made, the newest first: the PNG files in the run folder."""
    select_trainer(view, trainer)
    return Later(lambda: [*_files(view.folder)])


def _files(folder: Path | None) -> Iterator[dict[str, Any]]:
    if folder is None:
        return
    own = (path for path in folder.glob("*/*.png") if path.parent.name != MEDIA)
    paths = [path for path in own if path.is_file() and not path.is_symlink()]
    dated = sorted(((path.stat().st_mtime, path) for path in paths), reverse=True)
    for changed, path in [pair for pair in dated if pair[1].stat().st_size <= LARGEST][:MOST_FILES]:
        data = b64encode(path.read_bytes()).decode()
        yield {"address": path.relative_to(folder).as_posix(), "changed": changed, "png": data}


LAYERS: Mapping[str, Callable[..., Any]] = {one.__name__: one for one in (layer, activations, pictures)}
