"""Profile folders of pictures: classes, sizes, formats, colours, and files that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.decoding import ENDS
from sigma_data.pictures.folder import list_pictures
from sigma_data.pictures.labelled import SPLITS, split_folders
from sigma_data.pictures.looking import PictureFacts, look_at_pictures
from sigma_data.profiling.kinds import shorten
from sigma_data.profiling.profile import draw_bars
from sigma_kernel import Inspection

LOOKED = 5000  # pictures that are decoded, evenly spaced in the order of paths
SHOWN = 3  # sizes in a line
SAMPLES = 8  # of each class
CLASSES = 16  # of which samples are kept
FEW = 0.01  # share of pictures that may be an exception


@frozen(eq=False)
class PictureProfile:
    """A folder of pictures: the ``labels`` of all by path, empty for those in no folder, and what is known of some.

    ``facts`` are about the pictures that were decoded; ``parts`` has the number of pictures of each split that folders
    make; ``others`` are files of other kinds.
    """

    name: str
    labels: Mapping[str, str]
    facts: Sequence[PictureFacts] = field(repr=False)
    parts: Mapping[str, int]
    others: Sequence[str]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of pictures of each label, in the order of the labels."""
        return dict(sorted(Counter(self.labels.values()).items()))

    @property
    def faults(self) -> dict[str, str]:
        """Return what is wrong with pictures that cannot be used, by path."""
        return {facts.path: facts.fault for facts in self.facts if facts.fault}

    @property
    def usable(self) -> list[PictureFacts]:
        """Return the facts about pictures that could be decoded."""
        return [facts for facts in self.facts if not facts.fault]

    @property
    def sizes(self) -> list[tuple[tuple[int, int], int]]:
        """Return the widths and heights with their numbers of pictures, the most frequent first."""
        counts = Counter(facts.size for facts in self.usable)
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))

    @property
    def median_size(self) -> tuple[float, float]:
        """Return the median width and height."""
        sizes = [facts.size for facts in self.usable] or [(1, 1)]
        return median(width for width, _ in sizes), median(height for _, height in sizes)

    @property
    def is_coloured(self) -> bool:
        """Return whether more than a few pictures have colours."""
        return sum(facts.is_coloured for facts in self.usable) > FEW * len(self.usable)

    @property
    def is_plain(self) -> bool:
        """Return whether most pictures have a plain background, as letters and drawings have."""
        return sum(facts.is_plain for facts in self.usable) > len(self.usable) / 2

    @property
    def background(self) -> int:
        """Return the value of margins that suit plain pictures: 0 or 255."""
        corners = [facts.copy[:, ::31, ::31].mean() for facts in self.usable if facts.copy is not None]
        return 0 if corners and median(corners) < 128 else 255

    def describe_sizes(self, label: str | None = None) -> str:
        """Return the sizes of the pictures, or of those of a label, in a few words."""
        sizes = [facts.size for facts in self.usable if label in (None, self.labels[facts.path])]
        if len({*sizes}) <= SHOWN:
            return ", ".join(f"{width} x {height}" for (width, height), _ in Counter(sizes).most_common())
        smallest, largest = min(sizes, key=np.prod), max(sizes, key=np.prod)
        return f"{smallest[0]} x {smallest[1]} … {largest[0]} x {largest[1]}"

    def describe_formats(self, label: str | None = None) -> str:
        """Return the formats of the files, or of those of a label, with their numbers if there are several."""
        counts = Counter(facts.format for facts in self.usable if label in (None, self.labels[facts.path]))
        several = len(counts) > 1
        return ", ".join(f"{name} ({count:,})" if several else name for name, count in counts.most_common())

    @property
    def head(self) -> str:
        """Return the pictures in one line."""
        named = [label for label in self.counts if label]
        kinds = f", {len(named):,} classes" if named else ""
        facts = [self.describe_sizes(), "colours" if self.is_coloured else "grey", self.describe_formats()]
        splits = f"; {', '.join(f'{part} {count:,}' for part, count in self.parts.items())}" if self.parts else ""
        return f"{len(self.labels):,} pictures{kinds}, {', '.join(filter(None, facts))}{splits}"

    def table(self) -> Iterator[list[str]]:
        """Yield the rows of a table for people, its header first."""
        yield ["class", "pictures", "broken", "", "formats", "sizes"]
        counts = self.counts
        broken = Counter(self.labels[path] for path in self.faults)
        for label, count in counts.items():
            bar = draw_bars([count, max(counts.values())])[:1]
            facts = [self.describe_formats(label), self.describe_sizes(label)]
            yield [label or "(no class)", f"{count:,}", f"{broken[label]:,}" if broken[label] else "", bar, *facts]

    def samples(self) -> dict[str, np.ndarray]:
        """Return the middles of evenly spaced pictures of each class, (pictures, 3, height, width), uint8."""
        by_label: dict[str, list[np.ndarray]] = {label: [] for label in [*self.counts][:CLASSES]}
        for facts in self.usable:
            if facts.copy is not None and (label := self.labels[facts.path]) in by_label:
                by_label[label].append(facts.copy)
        spaced = {label: copies[:: -(-len(copies) // SAMPLES)] for label, copies in by_label.items() if copies}
        return {label: np.stack(copies) for label, copies in spaced.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the profile as plain values."""
        sizes = [{"width": width, "height": height, "pictures": count} for (width, height), count in self.sizes]
        return {
            "name": self.name, "pictures": len(self.labels), "classes": self.counts, "splits": dict(self.parts),
            "decoded": len(self.facts), "sizes": sizes, "formats": dict(Counter(f.format for f in self.usable)),
            "modes": dict(Counter(f.mode for f in self.usable)), "colours": self.is_coloured,
            "broken": self.faults, "others": [*self.others],
        }  # fmt: skip


def profile_pictures(root: Path) -> PictureProfile:
    """Return the profile of a folder of pictures, with a label for each folder in it."""
    listing, parts = list_pictures(root), split_folders(root)
    depth = 1 if parts else 0
    names = {picture.path: picture.path.split("/") for picture in listing.pictures}
    labels = {path: name[depth] if len(name) > depth + 1 else "" for path, name in names.items()}
    homes = Counter(SPLITS.get(name[0].lower(), "") for name in names.values())
    total = len(listing.pictures)
    some = [listing.pictures[i * total // LOOKED] for i in range(LOOKED)] if total > LOOKED else listing.pictures
    facts = look_at_pictures(root, some)
    return PictureProfile(root.name, labels, facts, {part: homes[part] for part in parts}, listing.others)


def holds_pictures(root: Path) -> bool:
    """Return whether a folder or archive has a file with the name of a picture; hidden ones do not count."""
    if is_archive(root):
        return bool(list_pictures(root).pictures)
    names = (path.relative_to(root).parts for path in root.rglob("*") if path.name.lower().endswith(ENDS))
    return any(not any(part.startswith(".") for part in parts) for parts in names)


def inspect_pictures(root: Path) -> Inspection:
    """Return the profile of a folder of pictures, with samples of each class."""
    profile = profile_pictures(root)
    findings, document = describe_oddities(profile), profile.to_json()
    return Inspection(f"{root}: {profile.head}", [*profile.table()], findings, document, profile.samples())


def describe_oddities(profile: PictureProfile) -> list[str]:
    """Return a sentence about broken files, about files without a class, about others, and about what was not read."""
    findings = [f"{path}: {fault}." for path, fault in profile.faults.items()]
    if len(profile.facts) < len(profile.labels):
        findings.append(f"{len(profile.facts):,} of {len(profile.labels):,} pictures were decoded, evenly spaced.")
    if loose := profile.counts.get(""):
        pictures = "1 picture is" if loose == 1 else f"{loose:,} pictures are"
        findings.append(f"{pictures} not in the folder of a class: the label may be in a table.")
    if profile.others:
        findings.append(f"files of other kinds, {len(profile.others):,}: {shorten(', '.join(profile.others), 60)}.")
    return findings
