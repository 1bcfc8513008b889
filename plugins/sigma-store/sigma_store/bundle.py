"""Pack a run folder into one file, and unpack such a file, which may come from anybody.

A bundle is a zip archive of ``bundle.json`` and of the files of a run folder, under their names there. Packing replaces
what names this machine: the journal is chained anew, and the checkpoints hold the new hashes, so that a run resumes and
replays from it. Unpacking writes only files of these names, into a new folder, and verifies the chain; nothing is
executed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.contracts.media import FOLDER, KEY
from sigma_kernel.contracts.storing import Log
from sigma_kernel.encoding import json_document
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store import files
from sigma_store.chain import HASH, JournalExcerpt, chain_row, hash_of
from sigma_store.checkpoints.store import ARRAYS, MANIFEST, SEAL, encode_manifest, read_manifest, seal
from sigma_store.excerpt import history
from sigma_store.folders import CHECKPOINTS, CONFIG, CURVES, JOURNAL, MEDIA, OLDER_METRICS, WrittenFolder, is_locked
from sigma_store.regular import open_regular
from sigma_store.run_folder import INITIAL, create

COVER, FORMAT = "bundle.json", 1
COPIED = (CURVES, OLDER_METRICS, MEDIA)  # files that are copied as they are
MEMBERS, LARGEST, DENSEST = 100_000, 1 << 36, 1100  # files, their bytes, and their bytes by one of the archive
PIECE = 1 << 20  # bytes
_FILES = "|".join(map(re.escape, (ARRAYS, MANIFEST, SEAL)))
_LABEL = r"[0-9]{1,19}(?:\.(?:branch|edited)-[0-9]{1,19})?"
INNER = re.compile(
    rf"{re.escape(CONFIG)}|{re.escape(JOURNAL)}|{'|'.join(map(re.escape, COPIED))}|[a-z]{{1,40}}\.json"
    rf"|{FOLDER}{KEY.pattern}"
    rf"|(?:{CHECKPOINTS}/[\w-]{{1,100}}/{_LABEL}|{INITIAL}/[\w-]{{1,100}})/(?:{_FILES})"
)
NAME = re.compile(r"\w[\w.-]{0,99}")
DAMAGED = zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError
Clean = Callable[[str], str]  # takes and returns a JSON text


# -- packing -----------------------------------------------------------------------------------------------------------
@define
class _Renewal:
    """What replaces the configuration and the lines of a journal, by the hashes at their ends."""

    configuration: tuple[str, str]  # hashes, old and new
    clean: Clean
    lines: dict[str, tuple[str, int]] = field(factory=dict)  # the new line, and where it ends

    def text(self, text: str) -> str:
        return self.clean(text.replace(*self.configuration))

    def hash(self, old: str) -> str:
        return hash_of(self.lines[old][0]) if old in self.lines else old

    def chain(self, old: Mapping[str, Any]) -> dict[str, Any]:
        """Return the end of the journal in a checkpoint."""
        rows = [self.lines[end][0] for end in map(hash_of, old["rows"]) if end in self.lines]
        configuration = old["configuration"].replace(*self.configuration)
        new = {**old, "configuration": configuration, "head": self.hash(old["head"]), "rows": rows}
        if bookmark := old.get("bookmark"):
            offset = self.lines.get(bookmark["hash"], ("", bookmark["offset"]))[1]
            configuration = bookmark["configuration"].replace(*self.configuration)
            places = {"hash": self.hash(bookmark["hash"]), "offset": offset, "configuration": configuration}
            new["bookmark"] = {**bookmark, **places}
        return new


def pack_run(
    run: Path, path: Path, name: str, documents: Mapping[str, bytes], clean: Clean, secret: Sequence[bytes], log: Log
) -> list[str]:
    """Write a run folder to the file ``path``, atomically; return the entries of the folder that are left out.

    The ``documents`` by name, ``config.toml`` among them, are in place of the run's; of others, none is packed. What
    ``clean`` returns is in place of the JSON text of each row of the journal, and of each manifest. Raises
    SigmaStateError while a process writes to the run, if a copied file has ``secret`` bytes, or the disk is full, and
    SigmaCheckpointError for a damaged run.
    """
    if is_locked(run):
        raise SigmaStateError(f"{run}: a process writes to it. Wait for its end, or stop it.")
    if not (run / JOURNAL).is_file():
        raise SigmaCheckpointError(f"{run}: has no journal to resume or replay from. Share a run that was trained.")
    folders = [*_list_checkpoints(run)]
    trainers = sorted({folder.parent.name for folder in folders if folder.parents[1].name == CHECKPOINTS})
    journal = history(run, trainers, log)
    before = files.digest(files.get_bytes(run / CONFIG, files.LARGEST))
    renewal = _Renewal((before, files.digest(documents[CONFIG])), clean)
    part = path.with_name(f".{path.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            cover = json_document({"run": name})
            for inner, data in {COVER: cover.encode(), **documents}.items():
                archive.writestr(zipfile.ZipInfo(inner), data, zipfile.ZIP_DEFLATED)
            _pack_journal(archive, journal, renewal, {hash for folder in folders for hash in _hashes(folder)})
            for folder in folders:
                _pack_checkpoint(archive, folder, folder.relative_to(run).as_posix(), renewal)
            for each in [*filter(lambda name: (run / name).is_file(), COPIED), *_list_media(run)]:
                _pack_file(archive, run / each, each, secret)
        part.replace(path)
    except OSError as error:
        raise SigmaStateError(f"{path}: cannot be written: {error.strerror}. Choose another file.") from error
    finally:
        part.unlink(missing_ok=True)
    packed = {*documents, JOURNAL, CHECKPOINTS, INITIAL, FOLDER.rstrip("/"), *COPIED}
    return sorted(entry.name for entry in run.iterdir() if entry.name not in packed)


def _list_checkpoints(run: Path) -> Iterator[Path]:
    """Yield the folders of checkpoints and of initial values; none is a link, or inside one."""
    for pattern in (f"{CHECKPOINTS}/*/*", f"{INITIAL}/*"):
        for folder in sorted(run.glob(pattern)):
            inner = f"{folder.relative_to(run).as_posix()}/{MANIFEST}"
            if INNER.fullmatch(inner) and not any(map(os.path.islink, (folder, folder.parent, folder.parent.parent))):
                yield folder


def _list_media(run: Path) -> list[str]:
    """Return the files of media, if their folder is not a link."""
    folder = run / FOLDER
    names = [] if folder.is_symlink() or not folder.is_dir() else [path.name for path in folder.iterdir()]
    return [f"{FOLDER}{name}" for name in sorted(filter(KEY.fullmatch, names))]


def _hashes(folder: Path) -> Iterator[str]:
    """Yield the hashes of the lines of the journal that a checkpoint names."""
    if chain := read_manifest(folder, _silent)["chain"]:
        yield from [chain["head"], (chain.get("bookmark") or {}).get("hash", ""), *map(hash_of, chain["rows"])]


def _silent(text: str) -> None:
    """Log nothing: the run is read again when it is resumed."""


def _pack_journal(archive: zipfile.ZipFile, journal: JournalExcerpt, renewal: _Renewal, needed: set[str]) -> None:
    last, end = "", 0
    with archive.open(zipfile.ZipInfo(JOURNAL), "w", force_zip64=True) as file:
        for line in journal.lines():
            row = renewal.text(f"{line[: -len(HASH) - 18]}}}")
            new = chain_row(last, row)
            last, end = hash_of(new), end + len(new) + 1
            if hash_of(line) in needed:
                renewal.lines[hash_of(line)] = new, end
            file.write(f"{new}\n".encode())


def _pack_checkpoint(archive: zipfile.ZipFile, folder: Path, inner: str, renewal: _Renewal) -> None:
    """Pack a checkpoint, with the new hashes."""
    document = json.loads(renewal.text(files.get_bytes(folder / MANIFEST, files.LARGEST).decode()))
    if chain := read_manifest(folder, _silent)["chain"]:
        document["chain"] = renewal.chain(chain)
    text = encode_manifest(document)
    for name, data in ((MANIFEST, text), (SEAL, seal(text))):
        archive.writestr(zipfile.ZipInfo(f"{inner}/{name}"), data, zipfile.ZIP_DEFLATED)
    _pack_file(archive, folder / ARRAYS, f"{inner}/{ARRAYS}")


def _pack_file(archive: zipfile.ZipFile, path: Path, inner: str, secret: Sequence[bytes] = ()) -> None:
    with open_regular(path) as source, archive.open(zipfile.ZipInfo(inner), "w", force_zip64=True) as file:
        tail = b""
        while piece := source.read(PIECE):
            if any(text in tail + piece for text in secret):
                raise SigmaStateError(f"{path}: names a folder of this machine, and is not shared. Move it away first.")
            tail = piece[-4096:]
            file.write(piece)


# -- unpacking ---------------------------------------------------------------------------------------------------------
def unpack_run(file: Path, parent: Path, check: Callable[[Path], None], log: Log) -> Path:
    """Write the run in a bundle to a new folder in ``parent``, and return that.

    Its chain and its manifests are verified, and ``check`` may refuse it: then no folder is left. Raises
    SigmaCheckpointError for a file that is not a bundle, is damaged, or too large.
    """
    with _open_bundle(file) as (archive, size):
        members = _check_members(file, archive.infolist(), size, parent)
        name = _read_name(file, archive)
        home = create(parent, name)
        try:
            for member in members:
                _unpack_member(archive, member, home)
            _verify(home.path, log)
            check(home.path)
        except BaseException:
            shutil.rmtree(home.path, ignore_errors=True)
            raise
    return home.path


@contextmanager
def _open_bundle(file: Path) -> Iterator[tuple[zipfile.ZipFile, int]]:
    try:
        with open_regular(file) as source, zipfile.ZipFile(source) as archive:
            yield archive, os.fstat(source.fileno()).st_size
    except OSError as error:
        raise SigmaCheckpointError(f"{file}: cannot be read: {error.strerror or error}. Check the path.") from error
    except DAMAGED as error:
        raise _bad(file, f"is not a whole zip archive: {error}") from error


def _bad(file: Path, what: str) -> SigmaCheckpointError:
    return SigmaCheckpointError(f"{file}: {what}. Ask for one that `sigma share RUN --save NAME.zip` wrote.")


def _check_members(
    file: Path, members: Sequence[zipfile.ZipInfo], size: int, parent: Path
) -> Sequence[zipfile.ZipInfo]:
    names, total = {member.filename for member in members}, sum(member.file_size for member in members)
    if len(members) > MEMBERS:
        raise _bad(file, f"has {len(members):,} files; a run has at most {MEMBERS:,}")
    if len(names) < len(members):
        raise _bad(file, "has two files of the same name")
    if wrong := sorted(name for name in names if not INNER.fullmatch(name)):
        raise _bad(file, f"has {wrong[0]!r:.100}, which is not a file of a run")
    if missing := {COVER, CONFIG, JOURNAL} - names:
        raise _bad(file, f"has no {sorted(missing)[0]}")
    if total > min(LARGEST, DENSEST * size):
        raise _bad(file, f"unpacks to {total:,} bytes from {size:,}")
    place = next(folder for folder in (parent.absolute(), *parent.absolute().parents) if folder.is_dir())
    if total > (free := shutil.disk_usage(place).free):
        raise SigmaStateError(f"{file}: unpacks to {total:,} bytes, and {free:,} are free in {parent}. Free some.")
    return [member for member in members if member.filename != COVER]


def _read_name(file: Path, archive: zipfile.ZipFile) -> str:
    """Return the name of the run on the cover."""
    with archive.open(COVER) as cover:
        document = files.document(file, cover.read(PIECE))
    if (number := document.get("format")) != FORMAT:
        raise _bad(file, f"has format {number!r:.20}, and this version reads {FORMAT}")
    if not isinstance(name := document.get("run"), str) or not NAME.fullmatch(name):
        raise _bad(file, f"names the run {name!r:.100}")
    return name


def _unpack_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, home: WrittenFolder) -> None:
    """Write one file, of no more bytes than the archive says."""
    *folders, name = member.filename.split("/")
    with archive.open(member) as source, home.open(*folders, make=True) as folder, (folder / name).open("xb") as target:
        shutil.copyfileobj(source, target, PIECE)


def _verify(run: Path, log: Log) -> None:
    """Read the journal and the manifests; raise SigmaCheckpointError if they are damaged, or do not fit each other."""
    for folder in _list_checkpoints(run):
        read_manifest(folder, log)
    trainers: list[str] = []
    with suppress(OSError):
        trainers = sorted(path.name for path in (run / CHECKPOINTS).iterdir())
    history(run, trainers, log)
