"""List the pictures in a folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from sigma_data.pictures.archive import is_archive, open_archive
from sigma_data.pictures.decoding import ENDS
from sigma_kernel import SigmaDataError
from sigma_kernel.errors import suggest_name

NO_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # controls, and bytes that are no UTF-8
CLUTTER = {"thumbs.db", "desktop.ini", "__macosx"}  # left by systems, and hidden there


@frozen
class Picture:
    """A file: its path below the folder, with slashes, and what tells whether it has changed since."""

    path: str
    size: int
    modified: int  # nanoseconds since 1970


@frozen
class Listing:
    """The pictures in a folder in the order of their paths, and the names of other files."""

    pictures: tuple[Picture, ...]
    others: tuple[str, ...]


def list_pictures(root: Path, ends: tuple[str, ...] = ENDS) -> Listing:
    """Return the files in a folder and the folders below that are pictures, or others, by the ends of their names.

    They may be in an archive as well. Hidden files are left out. Raises SigmaDataError for a missing folder, for
    links that leave the folder, and for links to folders, which might never end.
    """
    if is_archive(root):
        return _list_members(root, ends)
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "there is no such folder"
        near = suggest_name(root.name, (path.name for path in root.parent.iterdir())) if root.parent.is_dir() else ""
        raise SigmaDataError(f"{root}: {what}.{near or ' Check the path.'}")
    try:
        files = [(path, (root / path).stat()) for path in sorted(_walk(root))]
    except OSError as error:
        raise SigmaDataError(
            f"{error.filename or root}: cannot be read: {error.strerror}. Check its rights."
        ) from error
    regular = {path for path, about in files if stat.S_ISREG(about.st_mode) and path.lower().endswith(ends)}
    pictures = (Picture(path, about.st_size, about.st_mtime_ns) for path, about in files if path in regular)
    return Listing(tuple(pictures), tuple(path for path, _ in files if path not in regular))


def _list_members(root: Path, ends: tuple[str, ...]) -> Listing:
    """Return the files in an archive with such ends; ``modified`` is their checksum, or the time of the archive."""
    with open_archive(root, ends) as archive:
        shown = {name: about for name, about in sorted(archive.members.items()) if not _is_below_hidden(name)}
    for name in shown:
        _check_text(root, name, name)
    regular = {name for name in shown if name.lower().endswith(ends)}
    pictures = (Picture(name, shown[name].size, shown[name].modified) for name in shown if name in regular)
    return Listing(tuple(pictures), tuple(name for name in shown if name not in regular))


def pictures_at(root: Path, paths: Sequence[str]) -> list[Picture]:
    """Return the pictures at paths below a folder, or in an archive; without a size if there is none.

    Raises SigmaDataError for a path that leaves the folder.
    """
    if not is_archive(root):
        return [picture_at(root, path) for path in paths]
    members = {picture.path: picture for picture in list_pictures(root).pictures}
    return [members.get(path, Picture(path, -1, 0)) for path in paths]


def picture_at(root: Path, path: str) -> Picture:
    """Return the picture at a path below a folder; one without a size if there is none.

    Raises SigmaDataError for a path that leaves the folder.
    """
    try:
        inside, about = (root / path).resolve().is_relative_to(root.resolve()), (root / path).stat()
    except (OSError, ValueError, RuntimeError):  # missing, a NUL, or links in a circle: decoding reports it
        inside, about = "\0" in path or Path(os.path.normpath(root / path)).is_relative_to(root), None
    if not inside:
        raise SigmaDataError(f"{root}: {path!r} leaves the folder. Give paths below it.")
    if about is None or not stat.S_ISREG(about.st_mode):
        return Picture(path, -1, 0)
    return Picture(path, about.st_size, about.st_mtime_ns)


def subfolders(root: Path, ends: tuple[str, ...] = ENDS) -> list[str]:
    """Return the names of the folders in a folder, or an archive, in order, without hidden ones; none if missing."""
    if is_archive(root):
        listing = _list_members(root, ends)
        paths = (*(picture.path for picture in listing.pictures), *listing.others)
        return sorted({path.partition("/")[0] for path in paths if "/" in path})
    if not root.is_dir():
        return []
    return sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not _is_hidden(entry.name))


def _walk(root: Path) -> Iterator[str]:
    """Yield the paths of all files that are not hidden, relative to the folder."""
    home, waiting = root.resolve(), [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}".lstrip("/")
                if _is_hidden(entry.name):
                    continue
                _check_text(root, entry.name, path)
                if entry.is_symlink():
                    _check_link(root, path, home)
                if entry.is_dir():
                    waiting.append(path)
                else:
                    yield path


def _check_link(root: Path, path: str, home: Path) -> None:
    if not (root / path).exists():
        raise SigmaDataError(f"{root / path}: is a link to nothing. Delete it.")
    if not (root / path).resolve().is_relative_to(home):
        raise SigmaDataError(f"{root / path}: is a link that leaves the folder {root}. Copy the file instead.")
    if (root / path).is_dir():
        raise SigmaDataError(f"{root / path}: is a link to a folder. Copy its files, or delete the link.")


def _check_text(root: Path, name: str, path: str) -> None:
    if NO_TEXT.search(name):
        raise SigmaDataError(f"{root}: the name {path!r} holds characters that are no text. Rename it.")


def _is_below_hidden(path: str) -> bool:
    return any(_is_hidden(part) for part in path.split("/"))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in CLUTTER
