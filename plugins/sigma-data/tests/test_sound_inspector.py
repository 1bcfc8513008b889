"""The inspector of sounds: which folders it takes, what it shows, drafts and examines."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

from sigma_data import SoundFolder
from sigma_data.examining.sound_inspector import SoundInspector
from sigma_data.profiling.inspectors import TableInspector
from sigma_data.profiling.picture_inspector import PictureInspector
from sigma_kernel import Inspector, SigmaConfigError, SigmaDataError
from sigma_testing import InspectorSuite

soundfile = pytest.importorskip("soundfile")


def write_sounds(root: Path, count: int = 16) -> Path:
    for i in range(count):
        home = root / "sounds" / ["low", "high"][i % 2]
        home.mkdir(parents=True, exist_ok=True)
        rate = 8000 if i % 4 else 11_025
        time = np.arange(int(rate * (0.1 + 0.02 * i))) / rate
        soundfile.write(home / f"{i}.wav", np.sin(2 * np.pi * (300 + 1000 * (i % 2) + 10 * i) * time) / 2, rate)
    return root / "sounds"


class TestSoundInspector(InspectorSuite):
    def make(self) -> Inspector:
        return SoundInspector()

    def place(self, folder: Path) -> Path:
        return write_sounds(folder)


def test_a_folder_is_shown_by_class_and_drafted(tmp_path):
    folder = write_sounds(tmp_path)
    (folder / "low" / "broken.wav").write_bytes(b"RIFF")
    (folder / "notes.md").write_text("x")
    shown = SoundInspector().inspect(folder)
    assert shown.head == f"{folder}: 17 sounds, 2 classes, 0.10 … 0.26 … 0.40 s, 8,000, 11,025 Hz"
    assert [row[:3] for row in shown.table[1:]] == [["high", "8", ""], ["low", "9", "1"]]
    assert len(shown.findings) == 2
    data = tomllib.loads(SoundInspector().draft(folder, "sounds", {}).text)["data"]
    assert (data["dataset"], data["folder"], data["rate"], data["broken"]) == ("sound_folder", "sounds", 8000, "skip")
    assert data["seconds"] == pytest.approx(0.386, abs=0.01)  # 95 % are not longer
    assert data["split_by"] == "stratified"


def test_archives_and_splits_are_drafted(tmp_path):
    folder = write_sounds(tmp_path)
    place = Path(shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path, "sounds"))
    assert SoundInspector().takes(place)
    assert SoundInspector().draft(place, "packed.tar.gz", {}).name == "packed"
    for part in ("train", "test"):
        shutil.copytree(folder, tmp_path / "parts" / part)
    data = tomllib.loads(SoundInspector().draft(tmp_path / "parts", "parts", {}).text)["data"]
    assert data["split"] == {"training": 0.85, "validation": 0.15}
    sounds = SoundFolder(tmp_path / "parts", seconds=0.1, split=data["split"])
    assert {name: len(part) for name, part in sounds.items()} == {"training": 14, "validation": 2, "test": 16}


def test_other_folders_are_left_to_other_inspectors(tmp_path):
    folder = write_sounds(tmp_path)
    assert not TableInspector().takes(folder)
    assert not PictureInspector().takes(folder)
    (tmp_path / "loose").mkdir()
    shutil.copy(folder / "low" / "0.wav", tmp_path / "loose" / "a.wav")
    assert not SoundInspector().takes(tmp_path / "loose")


def test_what_does_not_fit_is_refused(tmp_path):
    folder = write_sounds(tmp_path)
    with pytest.raises(SigmaConfigError, match="--target: does not fit sounds, whose folders are the classes"):
        SoundInspector().draft(folder, "x", {"target": "y"})
    shutil.rmtree(folder / "high")
    with pytest.raises(SigmaConfigError, match="all sounds are of one class, 'low'"):
        SoundInspector().draft(folder, "x", {})
    for path in (folder / "low").iterdir():
        path.write_bytes(b"x")
    with pytest.raises(SigmaDataError, match=r"no sound can be used\. low/.*\.wav: is no WAV or FLAC"):
        SoundInspector().draft(folder, "x", {})


def test_equal_sounds_are_found_by_their_paths(tmp_path):
    folder = write_sounds(tmp_path)
    assert SoundInspector().examine(folder) == []
    shutil.copy(folder / "low" / "0.wav", folder / "high" / "copy.wav")
    findings = {finding.rule: finding for finding in SoundInspector().examine(folder)}
    assert findings["conflicts"].examples == ("high/copy.wav and low/0.wav",)


def test_files_that_cannot_be_decoded_are_found_by_their_headers(tmp_path):
    folder = write_sounds(tmp_path)
    whole = (folder / "low" / "0.wav").read_bytes()
    (folder / "low" / "0.wav").write_bytes(whole[:-10])
    (folder / "low" / "2.wav").write_bytes(whole[:44])
    soundfile.write(folder / "low" / "4.wav", np.zeros(0), 8000)
    draft = SoundInspector().draft(folder, "sounds", {})
    assert 'broken = "skip"' in draft.text
    assert sorted(note.split(":")[0] for note in draft.notes) == ["low/0.wav", "low/2.wav", "low/4.wav"]
    sounds = SoundFolder(folder, seconds=0.1, rate=8000, broken="skip")
    assert len(sounds.all_rows()[0]) == 13
