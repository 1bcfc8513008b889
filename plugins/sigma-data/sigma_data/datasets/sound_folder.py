"""Your own folder of sounds as a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from attrs import define, field

from sigma_data.datasets.sound_set import SoundSet
from sigma_data.pictures.labelled import LabelledPictures, read_folders, split_folders
from sigma_data.sound.decoding import ENDS


@define(eq=False)
class SoundFolder(SoundSet):
    """Sounds in folders, one for each class, as waves or spectrograms.

    Files are WAV or FLAC, of any sampling rate and number of channels, which are averaged. Waves, from -1 to 1, are
    resampled by a windowed sinc, the filter of ``scipy.signal.resample_poly``. Longer sounds are cut off after
    ``seconds``, shorter ones are padded with silence at the end.

    ``inputs`` are sequences (steps, values): ``wave`` has a step for each sample, of one value; ``spectrogram`` one for
    each window, the logarithm of the power at ``window // 2 + 1`` frequencies from 0 to half the rate; ``mel`` sums
    these powers by triangular filters on the mel scale, before the logarithm. A window is a periodic Hann window.
    ``lengths`` has the number of steps that hold sound, and ``mask`` is 1 for these steps and 0 for padding: recurrent
    layers and attention read either.

    Rows are in the order of their paths. Hidden files are left out. Folders named ``training`` (or ``train``),
    ``validation`` (``val``) and ``test`` above those of the classes are splits; without one for validation, ``split``
    divides that for training. All sounds are kept in memory.

    Needs soundfile: ``python -m pip install "sigma-data[sound]"``.

    Args:
        folder: Folder of the sounds, or a zip or tar archive of it, which is not extracted; in a configuration, a
            relative one starts in the directory of the configuration.
        group: Regular expression that finds the group of a sound in its path below the folder, such as a speaker; the
            sounds of a group stay in one split. The group is what its parentheses match, or all that matches.
    """

    folder: Path = field(converter=Path)
    group: str = field(default="", kw_only=True)

    @property
    def root(self) -> Path:
        """Return the folder."""
        return self.folder

    def list_splits(self) -> list[str]:
        """Return the splits that the folders make; only their names are read."""
        return split_folders(self.folder, ENDS)

    def list_files(self) -> LabelledPictures:
        """Return the sounds in the folders of their classes."""
        return read_folders(self.folder, ENDS, "sound")

    def find_groups(self, listed: LabelledPictures, rows: np.ndarray) -> tuple[str, ...] | None:
        """Return what the expression finds in the paths of some rows."""
        return listed.find_groups(self.group, rows) if self.group else None
