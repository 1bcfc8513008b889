"""The changes of a run since the last poll, as events."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field
from PIL import Image

from sigma_kernel.contracts import AddressEntry, Branch, Stretch, View, decode_media
from sigma_kernel.errors import SigmaCheckpointError
from sigma_monitor_tensorboard.events import SHOWN_AS, Events, last_steps, media_label, tag
from sigma_monitor_tensorboard.settings import settings

ARRAYS = 200  # parameters with histograms
PICTURES = 50  # new ones that are written at a look
LARGEST = 2**22  # bytes of a picture file
OWN = ("network", "optimiser", "optimisers", "hooks")  # below these, arrays are no pictures
STARTS = ("begin", "resumed")  # events in the journal from which training continues
MOMENT = ("trainer", "iteration", "epoch", "seconds", "time", "to_seconds")  # of a row of the journal


@define(eq=False)
class Written:
    """A branch of a trainer: where its events go, and the last iteration of each number in files of an earlier run."""

    events: Events
    done: Mapping[str, int]


@define(eq=False)
class Writing:
    """Write the changes; each branch of each trainer has its own directory."""

    view: View
    folder: Path
    most: int
    _cursors: dict[str, int] = field(factory=dict, init=False)
    _lines: dict[tuple[str, int], Written] = field(factory=dict, init=False)
    _row: int = field(default=0, init=False)  # of the journal
    _pictures: dict[str, Any] = field(factory=dict, init=False)  # as they were written
    _told: set[str] = field(factory=set, init=False)  # trainers whose settings were written
    _media: dict[str, Any] = field(factory=dict, init=False)  # by trainer, their version at the last look
    _shown: set[tuple[str, str, int, int, str]] = field(factory=set, init=False)  # media that were written

    def look(self) -> None:
        """Write measured values, commands and pictures that are new, and settings once values were measured."""
        for trainer in self.view.trainers():
            self._write_metrics(trainer)
        self._commands()
        for trainer in self.view.trainers():
            self._write_published(trainer)
            self._write_media(trainer)
        self._write_image_files()

    def flush(self) -> None:
        """Write everything to the disk."""
        for line in self._lines.values():
            line.events.flush()

    def close(self) -> None:
        """Write the settings of runs that ended early, and close all files."""
        for trainer in {trainer for trainer, _ in self._lines} - self._told:
            self._settings(trainer)
        for line in self._lines.values():
            line.events.close()

    # -- where -------------------------------------------------------------------------------------------------------
    def _line(self, trainer: str, index: int, branches: list[Branch]) -> Written:
        """Return the branch of an index in the history, whose file is opened when it is first needed."""
        if (trainer, index) not in self._lines:
            number, twin = branches[index].number, sum(b.number == branches[index].number for b in branches[:index])
            name = trainer + (f".branch-{number}" if number else "") + (f".again-{twin}" if twin else "")
            begun = self._first_iteration(trainer) if any((self.folder / name).glob("events.*")) else None
            done = (
                {} if begun is None else {key: min(last, begun) for key, last in last_steps(self.folder / name).items()}
            )
            self._lines[trainer, index] = Written(
                Events(self.folder / name, None if begun is None else begun + 1), done
            )
        return self._lines[trainer, index]

    def _first_iteration(self, trainer: str) -> int:
        """Return the iteration from which this run continues: its checkpoint's, after a resume."""
        rows = [row for _, row in self.view.journal() if row.get("event") in STARTS and row["trainer"] == trainer]
        return int(rows[-1]["iteration"]) if rows else 0

    def _present(self, trainer: str) -> Events:
        branches = self.view.trainer(trainer).branches()
        return self._line(trainer, len(branches) - 1, branches).events

    def _read_number(self, trainer: str, key: str) -> float:
        return next((entry.value or 0 for entry in self.view.entries(f"{trainer}.{key}")), 0)

    # -- what --------------------------------------------------------------------------------------------------------
    def _write_metrics(self, trainer: str) -> None:
        """Write measured values; read them again if training has left its branch meanwhile."""
        before: list[Branch] | None = None
        series: dict[str, tuple[int, list[Stretch]]] = {}
        while before != (branches := self.view.trainer(trainer).branches()):
            before = branches
            series = {
                entry.address: self.view.stretches(entry.address, self._cursors.get(entry.address, 0), self.most)
                for entry in self.view.entries(f"{trainer}.**")
                if _is_number(entry)
            }
        for address, (cursor, stretches) in series.items():
            self._cursors[address] = cursor
            for index, stretch in _place_stretches(stretches, branches):
                self._scalars(trainer, address, stretch, self._line(trainer, index, branches))
        if trainer not in self._told and self._read_number(trainer, "epoch") >= 1:
            self._settings(trainer)

    def _scalars(self, trainer: str, address: str, stretch: Stretch, line: Written) -> None:
        """Write the values that no earlier file has, those which it lost when its process was killed among them."""
        curve, name = stretch.curve, address.removeprefix(f"{trainer}.")
        new = curve.iterations > line.done.get(tag(name), -1)
        times = time.time() - np.maximum(0.0, self._read_number(trainer, "second") - curve.seconds[new])
        line.events.scalars(name, curve.iterations[new], curve.values[new], times)

    def _settings(self, trainer: str) -> None:
        """Write the settings of the run, once the compared values are known."""
        self._told.add(trainer)
        values = {} if self.view.folder is None else settings(self.view.folder)
        if values:
            head = f"{trainer}."
            measured = [address.removeprefix(head) for address, at in self._cursors.items() if at]
            self._present(trainer).settings(values, [name for name in measured if _compares(name)])

    def _commands(self) -> None:
        """Write the commands in the journal, each as a text."""
        for number, row in self.view.journal(self._row):
            self._row = number
            if "command" in row and row.get("trainer") in self.view.trainers():
                self._present(row["trainer"]).text("journal", int(row["iteration"]), _format_row(row))

    def _write_published(self, trainer: str) -> None:
        """Write pictures that hooks published."""
        for entry in [image for image in self.view.entries(f"{trainer}.**") if _is_picture(image)][:PICTURES]:
            pixels = self.view.get(entry.address)
            if pixels.dtype == np.uint8 and not np.array_equal(self._pictures.get(entry.address, ()), pixels):
                self._pictures[entry.address] = pixels
                name = entry.address.removeprefix(f"{trainer}.")
                self._present(trainer).picture(name, int(self._read_number(trainer, "iteration")), pixels)

    def _write_media(self, trainer: str) -> None:
        """Write media that hooks published, each on its branch, but what an earlier file has."""
        own = self.view.trainer(trainer)
        version = own.media_version()
        if version is None or version == self._media.get(trainer):
            return
        self._media[trainer], branches, now = version, own.branches(), self._read_number(trainer, "second")
        for entry in own.media():
            place = trainer, entry.name, entry.branch, entry.iteration, entry.key
            index = next((at for at in reversed(range(len(branches))) if branches[at].number == entry.branch), 0)
            line, label = self._line(trainer, index, branches), media_label(SHOWN_AS[entry.kind], entry.name)
            if place in self._shown or entry.iteration <= line.done.get(label, -1):
                continue
            self._shown.add(place)
            try:
                value = decode_media(entry, own.read_media(entry.key))
            except SigmaCheckpointError as error:  # it had to make room for others, or somebody has removed it
                self.view.log(f"tensorboard: {error}")
                continue
            line.events.media(entry.name, entry.iteration, value, time.time() - max(0.0, now - entry.seconds))

    def _write_image_files(self) -> None:
        """Write pictures that hooks wrote into the run folder."""
        paths = () if self.view.folder is None else sorted((self.view.folder / "images").rglob("*.png"))
        trainers, new = self.view.trainers(), 0
        for path in paths:
            stamp = path.stat().st_mtime_ns
            if self._pictures.get(str(path)) == stamp or path.stat().st_size > LARGEST or new == PICTURES:
                continue
            pixels = _pixels(path)
            if pixels is not None and trainers:
                new, self._pictures[str(path)] = new + 1, stamp
                at = int(self._read_number(trainers[0], "iteration"))
                self._present(trainers[0]).picture(f"images.{path.stem}", at, pixels)

    def histograms(self) -> None:
        """Write the histograms of the parameters."""
        for trainer in self.view.trainers():
            arrays = [entry.address for entry in self.view.entries(f"{trainer}.network.**") if entry.type == "array"]
            for address in arrays[:ARRAYS]:
                name = address.removeprefix(f"{trainer}.network.layers.")
                self._present(trainer).histogram(
                    name, int(self._read_number(trainer, "iteration")), self.view.get(address)
                )


def _place_stretches(stretches: list[Stretch], branches: list[Branch]) -> list[tuple[int, Stretch]]:
    """Return stretches with the indices of their branches; after a reset, several branches have one number."""
    pairs, index = [], len(branches) - 1
    for stretch in reversed(stretches):
        index = next((at for at in range(index, -1, -1) if branches[at].number == stretch.branch), 0)
        pairs.append((index, stretch))
        index -= 1
    return pairs[::-1]


def _is_number(entry: AddressEntry) -> bool:
    return entry.type in ("number", "whole", "any") and not entry.settable


def _is_picture(entry: AddressEntry) -> bool:
    """Return whether a published array may be a picture."""
    shape, level = entry.shape or (), entry.address.split(".")[1]
    picture = len(shape) == 2 or (len(shape) == 3 and shape[-1] in (1, 3))
    return entry.type == "array" and picture and level not in OWN and 0 not in shape


def _compares(name: str) -> bool:
    return name.partition(".")[0] in ("training", "validation", "test")


def _pixels(path: Path) -> np.ndarray | None:
    """Return the pixels of a file; None while a hook is writing it."""
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("L" if image.mode in ("L", "1") else "RGB"))
    except (OSError, SyntaxError):
        return None


def _format_row(row: Mapping[str, Any]) -> str:
    """Return a row of the journal as Markdown."""
    rest = {key: value for key, value in row.items() if key not in (*MOMENT, "command")}
    return f"**{row['command']}** `{json.dumps(rest, default=str)}`" if rest else f"**{row['command']}**"
