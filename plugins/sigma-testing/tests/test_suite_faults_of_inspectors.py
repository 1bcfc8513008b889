"""The suite of inspectors fails for planted faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve, frozen

from sigma_kernel import ConfigurationDraft, Inspection, Inspector, SigmaConfigError
from sigma_testing import InspectorSuite

from .faults import check_caught

TEXT = """format = 1
[run]
name = "notes"
[data]
path = "{}"
[network]
[trainer]
"""


@frozen
class Notes(Inspector):
    """Lines of a file."""

    def takes(self, place: Path) -> bool:
        return place.suffix == ".notes"

    def inspect(self, place: Path) -> Inspection:
        lines = place.read_text().splitlines()
        return Inspection("notes", [["line"], *([line] for line in lines)], ["it is short."], {"lines": lines})

    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        if unknown := {*wishes} - {"target"}:
            raise SigmaConfigError(f"--{unknown.pop()}: does not fit notes.")
        return ConfigurationDraft("notes", TEXT.format(written), ["the first column is the target."])


class TakesAll(Notes):
    def takes(self, place: Path) -> bool:
        return True


class TakesNothing(Notes):
    def takes(self, place: Path) -> bool:
        return False


class RaggedTable(Notes):
    def inspect(self, place: Path) -> Inspection:
        return evolve(super().inspect(place), table=[["line", "number"], ["c"]])


class FindsWords(Notes):
    def inspect(self, place: Path) -> Inspection:
        return evolve(super().inspect(place), findings=["short"])


class NoDocument(Notes):
    def inspect(self, place: Path) -> Inspection:
        return evolve(super().inspect(place), document={"mean": float("nan")})


class SamplesOfFloats(Notes):
    def inspect(self, place: Path) -> Inspection:
        return evolve(super().inspect(place), samples={"c": np.zeros((2, 3, 8, 8), np.float32)})


class ChannelsLast(Notes):
    def inspect(self, place: Path) -> Inspection:
        return evolve(super().inspect(place), samples={"c": np.zeros((2, 8, 8, 3), np.uint8)})


class NoConfiguration(Notes):
    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        return evolve(super().draft(place, written, wishes), text="train it")


class AnotherPlace(Notes):
    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        return super().draft(place, str(place), wishes)


class AnotherName(Notes):
    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        return evolve(super().draft(place, written, wishes), name="songs")


class Cleans(Notes):
    def inspect(self, place: Path) -> Inspection:
        place.write_text(place.read_text().strip())
        return super().inspect(place)


class IgnoresWishes(Notes):
    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        return super().draft(place, written, {})


FORM = "test_an_inspection_is_one_line_a_table_sentences_and_json"
DRAFT = "test_a_draft_is_a_configuration_of_the_data"
INSPECTORS: dict[type[Inspector], str] = {
    Notes: "",
    TakesAll: "test_it_takes_its_own_data_and_no_others",
    TakesNothing: "test_it_takes_its_own_data_and_no_others",
    RaggedTable: FORM,
    FindsWords: FORM,
    NoDocument: FORM,
    SamplesOfFloats: "test_samples_are_pictures_in_bytes",
    ChannelsLast: "test_samples_are_pictures_in_bytes",
    NoConfiguration: DRAFT,
    AnotherPlace: DRAFT,
    AnotherName: DRAFT,
    Cleans: "test_looking_changes_nothing",
    IgnoresWishes: "test_an_unknown_wish_is_refused",
}


@pytest.mark.parametrize("inspector", INSPECTORS)
def test_a_fault_in_an_inspector_is_caught(inspector: type[Inspector]) -> None:
    class Suite(InspectorSuite):
        def make(self) -> Inspector:
            return inspector()

        def place(self, folder: Path) -> Path:
            (folder / "songs.notes").write_text("c\nd\n")
            return folder / "songs.notes"

    check_caught(Suite(), INSPECTORS[inspector])
