"""Inspect folders of sounds, and draft configurations for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from attrs import evolve, frozen

from sigma_data.datasets.sound_folder import SoundFolder
from sigma_data.examining.gathering import gather
from sigma_data.examining.inspecting import DataInspector
from sigma_data.examining.rules import apply_rules
from sigma_data.pictures.archive import is_archive, strip_end
from sigma_data.pictures.folder import Picture, list_pictures
from sigma_data.pictures.labelled import read_folders
from sigma_data.pictures.opening import open_place
from sigma_data.profiling.drafting import PredictionTask, quote
from sigma_data.profiling.kinds import shorten
from sigma_data.profiling.profile import draw_bars
from sigma_data.profiling.step_drafting import StepDraft
from sigma_data.sound.decoding import ENDS, UnreadableSoundError, read_length
from sigma_data.subset import Subset
from sigma_kernel import (
    ConfigurationDraft,
    Dataset,
    Finding,
    Inspection,
    Inspector,
    SigmaConfigError,
    SigmaDataError,
)

LOOKED = 2000  # sounds that are opened, evenly spaced
MOST = 0.95  # share of sounds that are not cut off
LONGEST = 10.0  # seconds of a sound that are read
RATE = 16_000
SHORTEST = 0.1
BEGINNING = "input() + permute(2, 1)"


@frozen(eq=False)
class SoundFacts:
    """What sounds are: their seconds and rates, and what is wrong with others, by path."""

    seconds: Mapping[str, float]
    rates: Mapping[str, int]
    faults: Mapping[str, str]

    @property
    def usual(self) -> float:
        """Return the seconds that most do not exceed."""
        length = float(np.quantile([*self.seconds.values()], MOST)) if self.seconds else 1.0
        return max(SHORTEST, min(LONGEST, round(length, 2)))

    @property
    def rate(self) -> int:
        """Return the sampling rate to train on: that of most, if it is lower than what speech needs."""
        usual = Counter(self.rates.values()).most_common(1)
        return min(RATE, usual[0][0]) if usual else RATE

    @property
    def lines(self) -> list[str]:
        """Return the lines of a configuration that bring sounds to one form."""
        longest = max(self.seconds.values(), default=0)
        lines = [
            f"seconds = {self.usual:g}".ljust(32) + f"# the longest has {longest:,.2f}; sounds are cut off or padded"
        ]
        lines += [f"rate = {self.rate}", 'preprocessors.scale = "standardise"']
        return lines + (['broken = "skip"'] if self.faults else [])

    def describe(self, paths: Sequence[str]) -> tuple[str, str]:
        """Return lengths and sampling rates of some sounds in a few words."""
        seconds = sorted(self.seconds[path] for path in paths if path in self.seconds) or [0.0]
        rates = Counter(self.rates[path] for path in paths if path in self.rates)
        listed = ", ".join(f"{rate:,}" for rate, _ in rates.most_common(3))
        return f"{seconds[0]:.2f} … {seconds[len(seconds) // 2]:.2f} … {seconds[-1]:.2f} s", listed


def look_at_sounds(
    sounds: Sequence[Picture], opening: AbstractContextManager[Callable[[Picture], AbstractContextManager[IO[bytes]]]]
) -> SoundFacts:
    """Return what sound files are, by their headers; of many, some."""
    seconds, rates, faults = dict[str, float](), dict[str, int](), dict[str, str]()
    with opening as open_sound:
        for sound in sounds[:: -(-len(sounds) // LOOKED) or 1]:
            try:
                with open_sound(sound) as stream:
                    seconds[sound.path], rates[sound.path] = read_length(stream)
            except UnreadableSoundError as error:
                faults[sound.path] = str(error)
            except OSError as error:
                faults[sound.path] = f"cannot be read: {error.strerror or error}"
    return SoundFacts(seconds, rates, faults)


@frozen
class SoundInspector(Inspector):
    """Inspect folders of sounds, one for each class, or archives of them.

    Needs soundfile: ``python -m pip install "sigma-data[sound]"``.
    """

    def takes(self, place: Path) -> bool:
        """Return whether a folder or an archive has sounds in folders, and no pictures."""
        if not place.is_dir() and not is_archive(place):
            return False
        if place.is_dir() and not any(path.name.lower().endswith(ENDS) for path in place.rglob("*")):
            return False
        sounds = any("/" in sound.path for sound in list_pictures(place, ENDS).pictures)
        return sounds and not list_pictures(place).pictures

    def inspect(self, place: Path) -> Inspection:
        """Return lengths and sampling rates of the sounds of each class."""
        listed = read_folders(place, ENDS, "sound")
        classes = listed.classes.tolist()
        facts = look_at_sounds(listed.pictures, open_place(place, ENDS))
        pairs = [(sound.path, name) for sound, name in zip(listed.pictures, classes, strict=True)]
        paths = {name: [path for path, own in pairs if own == name] for name in sorted({*classes})}
        parts = {name: len(rows) for name, rows in listed.parts.items()}
        splits = f"; {', '.join(f'{name} {rows:,}' for name, rows in parts.items())}" if parts else ""
        lengths, rates = facts.describe([*facts.seconds])
        head = f"{place}: {len(classes):,} sounds, {len(paths):,} classes, {lengths}, {rates} Hz{splits}"
        counts = {name: len(own) for name, own in paths.items()}
        document = {
            "name": place.name, "sounds": len(classes), "classes": counts, "broken": dict(facts.faults),
            "splits": parts, "seconds": facts.usual,
        }  # fmt: skip
        return Inspection(head, [*_tabulate(paths, facts)], _describe(facts, listed.others), document)

    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        """Return a configuration that predicts the classes of the folders."""
        if wishes:
            raise SigmaConfigError(
                f"--{min(wishes)}: does not fit sounds, whose folders are the classes. Leave it out."
            )
        listed = read_folders(place, ENDS, "sound")
        facts = look_at_sounds(listed.pictures, open_place(place, ENDS))
        if not facts.seconds:
            path, fault = next(iter(facts.faults.items()))
            raise SigmaDataError(f"{place}: no sound can be used. {path}: {fault}.")
        counts = Counter(listed.classes.tolist())
        if len(counts) < 2:
            raise SigmaConfigError(f"{place}: all sounds are of one class, {min(counts)!r}. Add a folder with others.")
        named = shorten(", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items())), 90)
        name = strip_end(place.resolve().name) or "sounds"
        lines = ['dataset = "sound_folder"', f"folder = {quote(written)}", *facts.lines]
        lines.append(f"# {len(counts)} classes, the folders: {named}")
        task = PredictionTask("", len(counts), "a folder for each class")
        head = f"{name}: {len(listed.pictures):,} sounds in {len(counts)} classes"
        rows, smallest = len(listed.pictures), min(counts.values())
        draft = StepDraft(name, head, lines, BEGINNING, task, rows, smallest, [*listed.parts])
        return ConfigurationDraft(name, draft.text, _describe(facts, listed.others))

    def examine(self, data: Any, splits: Mapping[str, Dataset] | None = None, quick: bool = False) -> Sequence[Finding]:
        """Return what the rules find in a folder of sounds, such as equal ones, or in other data."""
        if not isinstance(data, Path) or not self.takes(data):
            return DataInspector().examine(data, splits, quick)
        listed = read_folders(data, ENDS, "sound")
        seconds = look_at_sounds(listed.pictures, open_place(data, ENDS)).usual
        sounds = SoundFolder(data, seconds=min(1.0, seconds), features="wave", broken="skip")
        if sounds.list_splits():
            return apply_rules(gather(sounds, sounds, quick), quick)
        every = sounds.all_rows()[0]
        numbers = every.rows_of_dataset if isinstance(every, Subset) else np.arange(len(every))
        paths = [listed.pictures[row].path for row in numbers.tolist()]
        return apply_rules(
            evolve(gather(sounds, {"training": every}, quick), splits={}, place=paths.__getitem__), quick
        )


def _tabulate(paths: Mapping[str, Sequence[str]], facts: SoundFacts) -> Iterator[list[str]]:
    """Yield the rows of a table for people, its header first."""
    yield ["class", "sounds", "broken", "", "seconds", "rate"]
    most = max(map(len, paths.values()))
    for name, own in paths.items():
        broken = sum(path in facts.faults for path in own)
        counts = [f"{len(own):,}", f"{broken:,}" if broken else "", draw_bars([len(own), most])[:1]]
        yield [name, *counts, *facts.describe(own)]


def _describe(facts: SoundFacts, others: Sequence[str]) -> list[str]:
    """Return a sentence for sounds that cannot be read, and one for other files."""
    notes = [f"{path}: {fault}." for path, fault in facts.faults.items()]
    if others:
        notes.append(f"files of other kinds, {len(others):,}: {shorten(', '.join(others), 60)}.")
    return notes
