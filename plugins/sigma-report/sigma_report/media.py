"""Media on the page of a run: some moments of each name, within a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from sigma_kernel.contracts import Media, MediaEntry, StoredRun, TableValue, TextValue
from sigma_kernel.errors import SigmaCheckpointError
from sigma_report.charts import as_text
from sigma_report.pieces import render_note, render_section
from sigma_report.redacting import Redactor
from sigma_run.launcher import say

MOST_BYTES = 4 << 20  # of the media of a page


@frozen
class ShownMedia:
    """What a page shows of media.

    Args:
        total: How many the run has.
        rows: By trainer and name, how many there are, and for each that is shown when it was published, and its HTML.
    """

    total: int
    rows: Mapping[str, tuple[int, Sequence[tuple[str, str]]]]

    @property
    def left_out(self) -> list[str]:
        """Return what the page lacks of them, as an entry of the run folder."""
        shown = sum(len(own) for _, own in self.rows.values())
        return [f"{self.total - shown:,} of {self.total:,} media"] if shown < self.total else []


def choose_media(stored: StoredRun, most: int, redactor: Redactor) -> ShownMedia:
    """Return at most so many moments of each name, evenly chosen, and fewer where they would have too many bytes."""
    entries = [entry for entry in stored.media(log=say) if not entry.is_left]
    names = dict[tuple[str, str], list[MediaEntry]]()
    for entry in entries:
        names.setdefault((entry.trainer, entry.name), []).append(entry)
    several = len({trainer for trainer, _ in names}) > 1
    rows = {
        (f"{trainer}: {name}" if several else name): (len(names[trainer, name]), [*_render(stored, own, redactor)])
        for (trainer, name), own in _fit(names, most).items()
    }
    return ShownMedia(len(entries), rows)


def _fit(names: Mapping[tuple[str, str], Sequence[MediaEntry]], most: int) -> dict[tuple[str, str], list[MediaEntry]]:
    """Return as many moments of each name as have room; of names whose last moments have none, the smallest."""
    for each in range(most, 0, -1):
        chosen = {key: _choose(own, each) for key, own in names.items()}
        if sum(entry.size for own in chosen.values() for entry in own) <= MOST_BYTES:
            return chosen
    lasts, room = dict[tuple[str, str], list[MediaEntry]](), MOST_BYTES
    for key, own in sorted(names.items(), key=lambda item: item[1][-1].size):
        room -= own[-1].size
        if most and room >= 0:
            lasts[key] = [own[-1]]
    return {key: lasts[key] for key in names if key in lasts}


def _choose(entries: Sequence[MediaEntry], most: int) -> list[MediaEntry]:
    """Return at most so many entries, evenly chosen, the last one among them."""
    count = min(most, len(entries))
    if count < 2:
        return [*entries[-count:]] if count else []
    return [entries[round(at * (len(entries) - 1) / (count - 1))] for at in range(count)]


def _render(stored: StoredRun, entries: Sequence[MediaEntry], redactor: Redactor) -> Iterator[tuple[str, str]]:
    """Yield when each was published, with its caption, and the value as HTML; one that is damaged is logged."""
    for entry in entries:
        try:
            value = _redact(stored.medium(entry), redactor)
        except SigmaCheckpointError as error:
            say(f"the page lacks a value: {error}", "yellow")
            continue
        when = f"epoch {entry.epoch:,}, iteration {entry.iteration:,}"
        yield f"{when}: {value.caption}" if value.caption else when, value.html()


def _redact(value: Media, redactor: Redactor) -> Media:
    clean: dict[str, Any] = {"caption": redactor.text(value.caption)}
    if isinstance(value, TextValue):
        clean["text"] = redactor.text(value.text)
    elif isinstance(value, TableValue):
        clean |= {"columns": redactor.redact_values(value.columns), "rows": redactor.redact_values(value.rows)}
    return evolve(value, **clean)


def render_media(shown: ShownMedia) -> str:
    """Return the section of media; empty if there are none."""
    parts = list[str]()
    for name, (total, own) in shown.rows.items():
        more = render_note(f"{len(own)} of {total:,}") if len(own) < total else ""
        figures = "".join(f"<figure>{text}<figcaption>{as_text(when)}</figcaption></figure>" for when, text in own)
        parts.append(f'<h3>{as_text(name)}</h3>{more}<div class="media">{figures}</div>')
    return render_section("Pictures, texts and sounds over time", *parts) if parts else ""
