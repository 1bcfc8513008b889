"""Read text files whole, and list those in a folder."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from attrs import field, frozen

from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.folder import Picture, list_pictures
from sigma_data.pictures.opening import open_place
from sigma_data.sources import local
from sigma_kernel import SigmaDataError
from sigma_kernel.settings import ge


@frozen
class TextDecoding:
    """How text files are read: their encoding, and the most bytes of one."""

    encoding: str = "utf-8-sig"
    largest: int = field(default=1 << 24, validator=ge(1))

    def read(self, path: Path) -> str:
        """Return the text of a file, with line feeds; raise SigmaDataError, with the byte, for one that is not text."""
        with local(path).open() as stream:
            return self.decode(stream, path)

    def decode(self, stream: IO[bytes], path: Path) -> str:
        """Return the text of an open file; ``path`` is its name in errors."""
        content = stream.read(self.largest + 1)
        if len(content) > self.largest:
            raise SigmaDataError(f"{path}: has more than {self.largest} bytes. Raise `largest`, or leave it out.")
        try:
            text = content.decode(self.encoding)
        except LookupError:
            raise SigmaDataError(f"encoding: there is no {self.encoding!r}. Most files are 'utf-8'.") from None
        except UnicodeError as error:
            where, name = f"{path}: byte {getattr(error, 'start', 0)}", self.encoding.removesuffix("-sig")
            raise SigmaDataError(
                f"{where}: the text is not valid {name} ({getattr(error, 'reason', error)}). Set the file's own "
                "`encoding`, such as 'latin-1'."
            ) from None
        if "\0" in text:
            marked = content.startswith(BOM_UTF8)  # else the encoding utf-8-sig would add its mark
            name = self.encoding if marked else self.encoding.removesuffix("-sig")
            place = len(text[: text.index("\0")].encode(name))
            raise SigmaDataError(
                f"{path}: byte {place}: there is a NUL character. Set the `encoding` of the file, such as 'utf-16'."
            )
        return text.replace("\r\n", "\n").replace("\r", "\n")


def read_texts(root: Path, files: Sequence[Picture], ends: tuple[str, ...], decoding: TextDecoding) -> list[str]:
    """Return the texts of files in a folder, or in an archive."""
    if not is_archive(root):
        return [decoding.read(root / file.path) for file in files]
    texts = []
    with open_place(root, ends) as open_text:
        for file in files:
            try:
                with open_text(file) as stream:
                    texts.append(decoding.decode(stream, root / file.path))
            except OSError as error:
                raise SigmaDataError(f"{root / file.path}: cannot be read: {error}. Pack it again.") from error
    return texts


def list_texts(root: Path, ends: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths below a folder, or in an archive, that end in one of these, in order, and those of other files.

    Hidden files are left out.  Raises SigmaDataError for a missing folder, and for links that leave it.
    """
    listing = list_pictures(root, tuple(ends))
    return [file.path for file in listing.pictures], [*listing.others]
