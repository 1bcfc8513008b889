"""Draft a configuration that trains on a folder of pictures as it is: their size, a network, and an end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from math import log2
from typing import Any

from attrs import field, frozen

from sigma_data.profiling.drafting import FEWEST, SHARES, choose_batch_size, quote
from sigma_data.profiling.kinds import shorten
from sigma_data.profiling.picture_labels import PictureTask
from sigma_data.profiling.pictures import PictureProfile

LONGEST, SMALLEST = 64, 8  # sides of pictures, if they are larger, or smaller
SAME = 0.05  # how far ratios of sides may differ
MOST = 0.95  # share of pictures that make a rule
UNEVEN = 3  # times as many pictures in one class as in another, from which on it is worth a sentence
GROUPS = re.compile(
    r"(?:^|[/_ -])((?:person|patient|subject|user|session|scene|video|clip|camera|site)[_ -]?[0-9]++)", re.IGNORECASE
)
EPOCHS = (20, 100, 200_000)  # fewest, most, and pictures to train on in all
BATCH = 128  # most pictures at once
FILTERS = ((1_000, 16), (1 << 62, 32))  # of the first convolution below so many pictures
DEEPEST = 128  # filters of the last one
FIGURES = {  # cost, score and its metrics by what is predicted
    "classes": ("softmax_cross_entropy()", "accuracy", ""),
    "labels": ("binary_cross_entropy()", "threshold_accuracy", ""),
    "numbers": ("squared_difference()", "r_squared", 'metrics = { error = "mean_absolute_error" }'),
}


@frozen
class PictureSize:
    """The height and width of pictures for a network, how others fit, and the reason."""

    height: int
    width: int
    fit: str
    reason: str

    @property
    def shorter(self) -> int:
        """Return the shorter side."""
        return min(self.height, self.width)


@frozen(slots=False)
class PictureDraft:
    """What a draft is made of: where the folder is, its profile, and what is to be predicted of how many pictures."""

    place: str
    name: str
    profile: PictureProfile = field(repr=False)
    task: PictureTask
    rows: int
    dataset: str = "image_folder"

    @cached_property
    def size(self) -> PictureSize:
        """Return the size to train on."""
        return choose_size(self.profile)

    @property
    def text(self) -> str:
        """Return the configuration."""
        parts = (self._head(), self._data(), self._augmentations(), self._network(), self._training(), ("",))
        return "\n".join(line for part in parts for line in part)

    @property
    def notes(self) -> list[str]:
        """Return what a user should look at, one sentence each, with the line to change."""
        notes = [self.task.unsure] if self.task.unsure else []
        notes += [*self._describe_broken(), *self._describe_balance(), *self._describe_groups()]
        if reason := self._reason_against_flipping:
            notes.append(
                f"pictures are not mirrored in training: {reason}. If a mirror image is of the same class, add "
                '[data.augmentations.mirror] with type = "flip".'
            )
        return notes

    # -- parts of the text ---------------------------------------------------------------------------------------------
    def _head(self) -> Iterator[str]:
        yield f"# {self.profile.name}: {self.profile.head}."
        yield from ("", "format = 1", "", "[run]", f"name = {quote(self.name)}", "seed = 0", "")

    def _data(self) -> Iterator[str]:
        task, size, profile = self.task, self.size, self.profile
        place = quote(_join_place(self.place, task.folder))
        yield from ("[data]", f"dataset = {quote(self.dataset)}", f"folder = {place}")
        for name, value in task.settings.items():
            written = _join_place(self.place, value) if name == "table" else value
            yield f"{name} = {_write(written)}"
        yield _comment(f"size = [{size.height}, {size.width}]", f"height and width: {size.reason}")
        if size.fit == "pad":
            yield _comment('fit = "pad"', 'with margins; "crop" cuts off, "stretch" distorts')
            yield f"background = {profile.background}"
        colours = f"{'some pictures have' if profile.is_coloured else 'pictures have no'} colours"
        yield _comment(f'colours = "{"rgb" if profile.is_coloured else "grey"}"', colours)
        if profile.faults:
            yield _comment('broken = "skip"', f"{shorten(', '.join(profile.faults), 60)} cannot be read")
        yield f"# {task.reason}"
        yield from self._split()
        yield f"batch_size = {min(BATCH, choose_batch_size(self.rows))}"
        yield ""

    def _split(self) -> Iterator[str]:
        if "validation" in self.profile.parts:
            yield f"# splits are the folders: {', '.join(f'{n} ({c:,})' for n, c in self.profile.parts.items())}"
            return
        yield "split = { training = 0.85, validation = 0.15 }" if self.profile.parts else SHARES
        if self.task.kind == "classes" and min(self.task.counts.values(), default=0) >= FEWEST:
            yield 'split_by = "stratified"'

    def _augmentations(self) -> Iterator[str]:
        if not self._reason_against_flipping:
            yield from (
                "[data.augmentations.mirror]     # of half of the pictures, in training alone",
                'type = "flip"',
                "",
            )
        padding, border = max(1, self.size.shorter // 10), "edge" if self.profile.is_plain else "reflect"
        yield from (f"[data.augmentations.move]       # by up to {padding} px", 'type = "crop"')
        yield from (f"padding = {padding}", f'border = "{border}"', "")
        if self.task.kind == "numbers":
            yield "[data.preprocessors.target]     # predictions are in the units of the column all the same"
            yield from ('type = "standardise"', 'section = "targets"', "")

    def _network(self) -> Iterator[str]:
        cost, _, _ = FIGURES[self.task.kind]
        sides = f"{self.size.height} x {self.size.width}"
        yield f"[network]                       # of a size for {self.rows:,} pictures of {sides}"
        yield from ('architecture = """', "input()")
        for filters in choose_filters(self.rows, self.size.shorter):
            block = f'conv2d({filters}, 3, padding="same", bias=false) + batch_norm() + activation("relu")'
            yield f"+ {block} + max_pool(2)"
        yield from (f"+ flatten() + dropout(0.3) + output({self.task.outputs}) + {cost}", '"""', "")

    def _training(self) -> Iterator[str]:
        fewest, most, pictures = EPOCHS
        epochs = max(fewest, min(most, pictures // max(1, self.rows)))
        _, score, metrics = FIGURES[self.task.kind]
        yield from ("[trainer]", 'optimiser = { type = "adamw", learning_rate = 0.002 }', f"epochs = {epochs}", "")
        yield from ("[hooks.score]", f'type = "{score}"', 'on = "validation"', *filter(None, [metrics]))
        yield from ('every = "1 epoch"', "", "[hooks.finish]                  # the best parameters are restored")
        yield from ('type = "early_stop"', 'value = "validation.loss"', "patience = 10", "restore = true")

    # -- what is unsure ------------------------------------------------------------------------------------------------
    @property
    def _reason_against_flipping(self) -> str:
        """Return why a mirror image may be of another class; empty if that is unlikely."""
        sides = [
            name for name in self.task.counts if re.search(r"(?:^|[^a-z])(?:left|right)(?:$|[^a-z])", name.lower())
        ]
        if sides:
            return f"{sides[0]!r} is about a side"
        if self.profile.is_plain:
            return "most have a plain background, as letters, digits and signs do"
        return ""

    def _describe_broken(self) -> Iterator[str]:
        faults, profile = self.profile.faults, self.profile
        if faults:
            first = "; ".join(f"{path} {fault}" for path, fault in [*faults.items()][:3])
            yield (
                f"{len(faults):,} of {len(profile.facts):,} pictures cannot be read and are left out: {first}"
                f'{"; ..." if len(faults) > 3 else ""}. With broken = "refuse" they are an error.'
            )  # fmt: skip
        if len(profile.facts) < len(profile.labels):
            yield f"{len(profile.facts):,} of {len(profile.labels):,} pictures were looked at."

    def _describe_balance(self) -> Iterator[str]:
        counts = self.task.counts
        if self.task.kind != "classes" or not counts:
            return
        fewest, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        if counts[most] >= UNEVEN * counts[fewest]:
            yield (
                f"classes are uneven: {counts[most]:,} pictures of {most!r}, {counts[fewest]:,} of {fewest!r}. Compare "
                f"the accuracy with {counts[most] / sum(counts.values()):.0%}, that of always answering {most!r}."
            )

    def _describe_groups(self) -> Iterator[str]:
        groups = [match[1] for path in self.profile.labels if (match := GROUPS.search(path))]
        distinct = len({*groups})
        if len(groups) == len(self.profile.labels) and 2 < distinct <= len(groups) / 2:
            word = groups[0].rstrip("0123456789")
            yield (
                f"names may hold groups of pictures, such as {groups[0]!r}, {distinct:,} in all; to keep each in one "
                f"split, write group = {quote(f'({word}[0-9]+)')} below [data]."
            )


def choose_size(profile: PictureProfile) -> PictureSize:
    """Return the size of pictures for a network, at most 64 pixels a side, with the ratio of sides that most have.

    Pictures of many ratios become squares: cropped, or padded if they are drawings, of which nothing may be cut off.
    """
    width, height = profile.median_size
    alike = sum(count for (w, h), count in profile.sizes if abs(w * height / (h * width) - 1) <= SAME)
    if not (is_alike := alike >= MOST * len(profile.usable)):
        width = height = max(width, height)
    factor = min(1.0, LONGEST / max(width, height))
    sides = (max(SMALLEST, round(height * factor)), max(SMALLEST, round(width * factor)))
    fit = "pad" if profile.is_plain and not is_alike else "crop"
    if factor == 1 and len(profile.sizes) == 1:
        return PictureSize(*sides, fit, "that of the pictures")
    reason = f"pictures have {profile.describe_sizes()}"
    slower = "; twice the sides take four times as long" if factor < 1 else ""
    return PictureSize(*sides, fit, reason + slower)


def choose_filters(rows: int, shorter: int) -> list[int]:
    """Return the filters of each convolution: as many as leave 4 pixels of the shorter side, from 1 to 4."""
    count = max(1, min(4, int(log2(shorter / 4))))
    first = next(filters for limit, filters in FILTERS if rows < limit)
    return [min(DEEPEST, first << i) for i in range(count)]


def _join_place(place: str, name: str) -> str:
    return f"{place.rstrip('/')}/{name}" if name else place


def _comment(line: str, reason: str) -> str:
    return f"{line.ljust(31)} # {reason}"


def _write(value: Any) -> str:
    return f"[{', '.join(map(quote, value))}]" if isinstance(value, list) else quote(value)
