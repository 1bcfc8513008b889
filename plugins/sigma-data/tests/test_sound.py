from __future__ import annotations

import io
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.signal
import soundfile

from sigma_data import SoundFolder
from sigma_data.sound.decoding import SoundForm, UnreadableSoundError
from sigma_data.sound.resampling import resample
from sigma_data.sound.spectra import mel_filters, power_spectrogram
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError, SigmaPluginError
from sigma_testing import DatasetSuite

RANDOM = np.random.default_rng(0)
RATE = 1000


def write(path: Path, wave: np.ndarray, rate: int = RATE, subtype: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, wave, rate, subtype)
    return path


def write_folder(folder: Path, count: int = 10) -> Path:
    for i in range(count):
        write(folder / "low" / f"{i}.wav", 0.5 * np.sin(np.arange(60 + i) / 9))
        write(folder / "high" / f"{i}.flac", 0.5 * np.sin(np.arange(90 + i) / 2))
    return folder


def folder_of(path: Path, **settings) -> SoundFolder:
    return SoundFolder(path, **{"seconds": 0.08, "rate": RATE, "features": "wave", **settings})


class TestSoundFolder(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _write(self, tmp_path: Path) -> None:
        self.folder = write_folder(tmp_path)

    def make(self) -> Dataset:
        return SoundFolder(self.folder, seconds=0.08, rate=RATE, window=20, hop=10, mels=4)["training"]


# -- signals -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2, 37, 2000])
@pytest.mark.parametrize(("rate", "to"), [(44100, 16000), (8000, 16000), (48000, 8000), (22050, 16000), (7, 5), (5, 5)])
def test_waves_are_resampled_as_by_scipy(rate, to, count, monkeypatch):
    monkeypatch.setattr("sigma_data.sound.resampling.ROWS", 500)
    wave, common = RANDOM.normal(size=count), np.gcd(rate, to)
    wanted = scipy.signal.resample_poly(wave, to // common, rate // common)
    np.testing.assert_allclose(resample(wave, rate, to), wanted, atol=1e-13)


@pytest.mark.parametrize(("window", "hop"), [(64, 16), (63, 63), (2, 1), (500, 7)])
def test_powers_are_those_of_scipy(window, hop):
    wave, hann = RANDOM.normal(size=500), scipy.signal.get_window("hann", window)
    _, _, stft = scipy.signal.stft(
        wave, window=hann, nperseg=window, noverlap=window - hop, boundary=None, padded=False
    )
    np.testing.assert_allclose(power_spectrogram(wave, window, hop), np.abs(stft.T * hann.sum()) ** 2, atol=1e-10)


@pytest.mark.parametrize(("rate", "window", "count"), [(16000, 400, 40), (8000, 256, 20), (1000, 20, 4)])
def test_mel_filters_are_triangles_between_their_neighbours(rate, window, count):
    points = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), count + 2)
    corners = 700 * (10 ** (points / 2595) - 1)
    wanted = [np.interp(np.linspace(0, rate / 2, window // 2 + 1), corners[i : i + 3], [0, 1, 0]) for i in range(count)]
    np.testing.assert_allclose(mel_filters(rate, window, count), np.transpose(wanted), atol=1e-12)


# -- decoding ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("end", ["wav", "flac"])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
def test_samples_are_those_of_the_file_averaged_over_channels(tmp_path, end, subtype):
    wave = RANDOM.uniform(-1, 1, (50, 2))
    path = write(tmp_path / f"x.{end}", wave, subtype=subtype)
    with path.open("rb") as stream:
        values, count = SoundForm(RATE, 80, "wave", 20, 10, 4).decode(stream)
    assert (values.shape, values.dtype, count) == ((80, 1), np.float32, 50)
    np.testing.assert_allclose(values[:50, 0], wave.mean(axis=1), atol=4e-5)
    assert not values[50:].any()


def test_a_part_of_a_long_file_is_what_all_of_it_would_give(tmp_path):
    wave = RANDOM.uniform(-1, 1, 200_000)
    path = write(tmp_path / "x.wav", wave, 44100, "FLOAT")
    with path.open("rb") as stream:
        values, count = SoundForm(16000, 30_000, "wave", 20, 10, 4).decode(stream)
    assert count == 30_000
    wanted = scipy.signal.resample_poly(wave.astype(np.float32), 160, 441)[:30_000]
    np.testing.assert_allclose(values[:, 0], wanted, atol=1e-6)


def test_spectrograms_have_a_step_for_each_window(tmp_path):
    wave = RANDOM.uniform(-1, 1, 50)
    path = write(tmp_path / "x.wav", wave, subtype="FLOAT")
    padded = np.concatenate([wave.astype(np.float32), np.zeros(30)])
    power = power_spectrogram(padded, 20, 10)
    for features, wanted in (("spectrogram", power), ("mel", power @ mel_filters(RATE, 20, 4))):
        form = SoundForm(RATE, 80, features, 20, 10, 4)
        with path.open("rb") as stream:
            values, count = form.decode(stream)
        assert (values.shape, count) == (form.shape, 4)  # the windows from samples 0, 10, 20 and 30
        np.testing.assert_allclose(values, np.log(np.maximum(wanted, 1e-10)), rtol=1e-5)


def as_wav(wave: np.ndarray, subtype: str = "PCM_16") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, wave, RATE, subtype, format="WAV")
    return file.getvalue()


def as_flac(wave: np.ndarray) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, wave, RATE, format="FLAC")
    return file.getvalue()


def as_ogg(wave: np.ndarray) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, wave, 8000, format="OGG")
    return file.getvalue()


NOISE = RANDOM.uniform(-1, 1, 3000)
FAULTY = {
    "cut wav": (as_wav(NOISE)[:-1000], "is cut off: 5,044 of 6,044 bytes are there"),
    "cut flac": (as_flac(NOISE)[:-1500], "damaged|is cut off"),
    "empty": (b"", "is no WAV or FLAC file, or damaged"),
    "text": (b"sound\0" * 30, "is no WAV or FLAC file, or damaged"),
    "no samples": (as_wav(NOISE[:0]), "holds no sound"),
    "not finite": (as_wav(np.array([0.5, np.nan, 0.1]), "FLOAT"), "holds samples that are not finite"),
    "ogg": (as_ogg(NOISE), "is a file of OGG. Save it as WAV or FLAC"),
    "rate": (as_wav(NOISE).replace(struct.pack("<I", RATE), struct.pack("<I", 1 << 30), 1), "1,073,741,824 samples a"),
    "channels": (as_wav(NOISE)[:22] + b"\xff\x03" + as_wav(NOISE)[24:], "channels and|damaged"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_what_cannot_be_decoded_is_refused_with_a_reason(name):
    content, reason = FAULTY[name]
    with pytest.raises(UnreadableSoundError, match=reason):
        SoundForm(RATE, 5000, "wave", 20, 10, 4).decode(io.BytesIO(content))


# -- folders -----------------------------------------------------------------------------------------------------------
def test_a_folder_has_a_class_for_each_folder_and_masks_of_the_padding(tmp_path):
    data = folder_of(write_folder(tmp_path), split={"training": 1.0})
    block = data["training"].block(0)
    assert data.classes == ("high", "low")
    assert {name: values.shape for name, values in block.items()} == {
        "inputs": (20, 80, 1), "lengths": (20,), "mask": (20, 80), "targets": (20,),
    }  # fmt: skip
    assert block["targets"].tolist() == [0] * 10 + [1] * 10
    assert block["lengths"].tolist() == [80] * 10 + list(range(60, 70))
    np.testing.assert_array_equal(block["mask"].sum(axis=1), block["lengths"])
    np.testing.assert_array_equal(block["inputs"][10, 60:], 0)
    np.testing.assert_allclose(block["inputs"][10, :60, 0], 0.5 * np.sin(np.arange(60) / 9), atol=1e-4)


def test_folders_of_splits_and_groups_of_names(tmp_path):
    for part in ("train", "val"):
        write_folder(tmp_path / "parts" / part, 3)
    data = folder_of(tmp_path / "parts")
    assert {name: len(part) for name, part in data.items()} == {"training": 6, "validation": 6}
    assert len(data["validation"].block(0)["inputs"]) == 6
    write_folder(tmp_path / "grouped")
    data = folder_of(tmp_path / "grouped", group=r"(\d+)\.", split={"training": 0.5, "validation": 0.5})
    assert {name: len(part) for name, part in data.items()} == {"training": 10, "validation": 10}
    lows = [len({*part.groups()}) for part in data.values()]
    assert lows == [5, 5]


def test_broken_files_are_refused_or_skipped_by_choice(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "low" / "3.wav").write_bytes(FAULTY["cut wav"][0])
    (tmp_path / "low" / "notes.txt").write_text("x")
    (tmp_path / "low" / ".hidden.wav").write_text("x")
    with pytest.raises(SigmaDataError, match=r"(?s)1 of 20 sounds cannot be used:\n  low/3\.wav: is cut off.*'skip'"):
        len(folder_of(tmp_path)["training"])
    data = folder_of(tmp_path, broken="skip", split={"training": 1.0})
    assert len(data["training"]) == 19
    assert data["training"].block(0)["targets"].tolist() == [0] * 10 + [1] * 9
    notes = data["training"].findings((), {})
    assert notes[0].startswith("1 sound is left out: low/3.wav is cut off")
    assert notes[1] == "1 file is left out, by the end of the name: 'low/notes.txt'."


def test_a_sound_that_ends_early_is_cut_off():
    class Ended:
        """A decoder that has no samples after the first piece, as some have where a file is cut."""

        frames, samplerate, channels = 100_000, RATE, 1

        def __init__(self):
            self.left = 1000

        def read(self, count, **_):
            piece, self.left = np.zeros((min(count, self.left), 1)), 0
            return piece

    with pytest.raises(UnreadableSoundError, match=r"is cut off: [\d,]+ of 100,000 samples are there"):
        SoundForm(RATE, 5000, "wave", 20, 10, 4)._read_wave(Ended())


def test_a_file_that_cannot_be_opened_is_broken(tmp_path, monkeypatch):
    write_folder(tmp_path)
    before = os.open

    def refuse(path, *rest, **more):
        if str(path).endswith("3.wav"):
            raise PermissionError(13, "Permission denied")
        return before(path, *rest, **more)

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(SigmaDataError, match=r"low/3\.wav: cannot be read: Permission denied"):
        len(folder_of(tmp_path)["training"])


def test_links_out_of_the_folder_and_changes_are_refused(tmp_path, monkeypatch):
    write_folder(tmp_path / "in")
    os.symlink(write(tmp_path / "other.wav", NOISE), tmp_path / "in" / "low" / "x.wav")
    with pytest.raises(SigmaDataError, match=r"x\.wav: is a link that leaves the folder"):
        len(folder_of(tmp_path / "in")["training"])
    (tmp_path / "in" / "low" / "x.wav").unlink()
    decode = SoundForm.decode

    def change(form, stream):
        os.utime(tmp_path / "in" / "low" / "0.wav", (1, 1))
        return decode(form, stream)

    monkeypatch.setattr(SoundForm, "decode", change)
    with pytest.raises(SigmaDataError, match=r"0\.wav: has changed while the folder was read"):
        len(folder_of(tmp_path / "in")["training"])


def test_other_sounds_are_read_in_the_form_of_the_training(tmp_path):
    data = folder_of(write_folder(tmp_path / "in"))
    other = write(tmp_path / "other" / "x.wav", NOISE)
    assert data.samples(other, (80, 1)).shape == data.samples(tmp_path / "other", (80, 1)).shape == (1, 80, 1)
    assert data.files(tmp_path / "other") == [other]
    with pytest.raises(SigmaDataError, match=r"sounds have shape \(80, 1\); the network takes \(4,\)"):
        data.samples(other, (4,))
    other.write_bytes(b"RIFF")
    with pytest.raises(SigmaDataError, match="1 of 1 sounds cannot be used"):
        data.samples(other, (80, 1))
    other.unlink()
    with pytest.raises(SigmaDataError, match="has no sounds"):
        data.samples(tmp_path / "other", (80, 1))
    np.save(tmp_path / "x.npy", np.ones((2, 80, 1)))
    assert data.samples(tmp_path / "x.npy", (80, 1)).shape == (2, 80, 1)


def test_settings_that_leave_no_step_are_refused(tmp_path):
    with pytest.raises(SigmaConfigError, match=r"SoundFolder\.seconds: 0\.01 s .* are 10 samples\. They must be 20 to"):
        SoundFolder(tmp_path, seconds=0.01, rate=RATE, window=20)
    with pytest.raises(SigmaConfigError, match=r"are 1,000,000,000 samples"):
        folder_of(tmp_path, seconds=1e6)


def test_without_soundfile_it_is_said_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(SigmaPluginError, match=r'pip install "sigma-data\[sound\]"'):
        len(folder_of(write_folder_without(tmp_path))["training"])


def write_folder_without(path: Path) -> Path:
    for name in "ab":
        (path / name).mkdir()
        (path / name / "x.wav").write_bytes(as_wav_by_hand())
    return path


def as_wav_by_hand() -> bytes:
    return b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE, 1, 8) + b"data"


def test_a_file_without_the_byte_that_pads_an_odd_length_is_read(tmp_path):
    file = io.BytesIO()
    soundfile.write(file, np.linspace(-0.5, 0.5, 101), 8000, format="WAV", subtype="PCM_U8")
    whole = file.getvalue()
    declared = int.from_bytes(whole[4:8], "little") + 8
    assert (len(whole), declared) == (146, 146)
    form = SoundForm(8000, 101, "wave", 2, 1, 1)
    np.testing.assert_array_equal(form.decode(io.BytesIO(whole[:-1]))[0], form.decode(io.BytesIO(whole))[0])
    with pytest.raises(UnreadableSoundError, match="is cut off"):
        form.decode(io.BytesIO(whole[:-2]))


def test_a_file_that_lacks_one_byte_of_its_last_chunk_is_refused():
    content = as_wav(NOISE)  # of 16 bits, so that nothing is padded
    chunk = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    longer = content[:4] + struct.pack("<I", len(content) + len(chunk) - 8) + content[8:] + chunk
    many = content[:4] + struct.pack("<I", len(content) + 16001 - 8) + content[8:] + (b"fact" + bytes(4)) * 2000
    form = SoundForm(RATE, 3000, "wave", 20, 10, 4)
    assert form.decode(io.BytesIO(content))[1] == form.decode(io.BytesIO(longer[:-1]))[1] == 3000
    counted = content[:4] + struct.pack("<I", len(content) - 7) + content[8:]  # one byte more than there is
    assert form.decode(io.BytesIO(counted))[1] == 3000
    for cut in (content[:-1], longer[:-2], many):
        with pytest.raises(UnreadableSoundError, match="is cut off: [0-9,]+ of [0-9,]+ bytes are there"):
            form.decode(io.BytesIO(cut))
