"""Release all distributions at one version: ``python tests/installs/release.py 0.2.0``.

Without ``--write``, all steps are taken in a temporary clone of the last commit, and nothing here changes. With it,
they are taken here: the wheels are in ``dist/``, and the release is a commit and a tag, to be pushed by hand. The
upgrade is tested from the newest tag, or from the commit that ``--from`` names.
Needs ``pip install flit_core towncrier twine``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import unpack_archive
from tempfile import TemporaryDirectory

from attrs import evolve, frozen

ROOT = Path(__file__).parents[2]
TOOLS = ("flit_core", "towncrier", "twine")
VERSION = re.compile(r'^((?:__version__|version) = )"\d+\.\d+\.\d+"$', re.MULTILINE)
ADDRESS = re.compile(r'^Repository = "(.*)"$', re.MULTILINE)
RESERVED = ".example"  # RFC 2606: an address of nobody, until there is one
SERIES = re.compile(r"(\bsigma-[a-z-]+(?:\[[\w,]+\])?) ~=\d+\.\d+")


@frozen
class Release:
    """A version of all distributions, and the repository in which it is made."""

    folder: Path
    version: str
    since: str  # the commit whose runs must resume after an upgrade
    address: str = ""  # of the repository, if it is another than before


# -- versions ----------------------------------------------------------------------------------------------------------
def replace_version(text: str, version: str) -> str:
    """Return the text of a distribution with another version of its own."""
    return VERSION.sub(rf'\g<1>"{version}"', text, count=1)


def replace_series(text: str, version: str) -> str:
    """Return a text whose requirements of Sigma's distributions begin at the minor version of another version."""
    return SERIES.sub(rf"\g<1> ~={version.rpartition('.')[0]}", text)


def set_versions(root: Path, version: str) -> None:
    """Write a version into the kernel and all rooms, and into what they and the guide for plugins require."""
    rooms = sorted(root.glob("plugins/*/pyproject.toml"))
    for path in (root / "sigma_kernel" / "__init__.py", *rooms):
        path.write_text(replace_version(path.read_text("utf-8"), version), "utf-8")
    for path in (root / "pyproject.toml", *rooms, root / "docs" / "plugins.md"):
        path.write_text(replace_series(path.read_text("utf-8"), version), "utf-8")


# -- the address of the repository -------------------------------------------------------------------------------------
def read_address(root: Path) -> str:
    """Return the address of the repository that all distributions name; empty for a folder without a project."""
    project = root / "pyproject.toml"
    found = ADDRESS.search(project.read_text("utf-8")) if project.is_file() else None
    return found[1] if found else ""


def list_pages(root: Path) -> list[Path]:
    """Return the files that name the address: projects, and the pages that an index shows."""
    return [
        root / "pyproject.toml",
        root / "sigma_kernel" / "README.md",
        *sorted(root.glob("plugins/*/pyproject.toml")),
        *sorted(root.glob("plugins/*/README.md")),
    ]


def set_address(root: Path, address: str) -> None:
    """Write another address of the repository into all distributions."""
    before = re.escape(read_address(root))
    for path in list_pages(root):
        path.write_text(re.sub(rf"{before}(?=[/)\"])", address.rstrip("/"), path.read_text("utf-8")), "utf-8")


# -- programs ----------------------------------------------------------------------------------------------------------
def run(*command: str | Path, folder: Path, attempts: int = 1) -> str:
    """Run a program and return its output; end with its messages if it fails in every attempt.

    Another attempt follows only where a signal ended the program: it crashed, and said nothing of what it was given.
    """
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "SIGMA_DISABLE_PLUGINS"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    if done.returncode < 0 and attempts > 1:
        return run(*command, folder=folder, attempts=attempts - 1)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def python(*arguments: str | Path, folder: Path) -> str:
    """Run a module or a script by this interpreter."""
    return run(sys.executable, *arguments, folder=folder)


def last_tag(folder: Path) -> str:
    """Return the newest tag of a release before the current commit, or nothing."""
    tags = run("git", "tag", "--merged", "HEAD", "--list", "v*", "--sort=-v:refname", folder=folder)
    return tags.partition("\n")[0]


def wheels(root: Path, target: Path) -> list[Path]:
    """Build the wheel of every distribution of a source tree into a folder, and return them."""
    for project in (root, *sorted(path.parent for path in root.glob("plugins/*/pyproject.toml"))):
        python("-m", "flit_core.wheel", "--outdir", target, project, folder=root)
    return sorted(target.glob("*.whl"))


SDISTS = """
import os, sys
from flit_core.buildapi import build_sdist

for project in sys.argv[2:]:
    os.chdir(project)
    build_sdist(sys.argv[1])
"""


def sdists(root: Path, target: Path) -> list[Path]:
    """Build the source distribution of every distribution of a source tree into a folder, and return them."""
    target.mkdir(exist_ok=True)
    python(
        "-c", SDISTS, target, root, *sorted(path.parent for path in root.glob("plugins/*/pyproject.toml")), folder=root
    )
    return sorted(target.glob("*.tar.gz"))


def default_set(root: Path, built: Sequence[Path]) -> list[Path]:
    """Return the wheels of the kernel and of the rooms that ``requirements.txt`` lists."""
    rooms = re.findall(r"^-e \./plugins/(\S+)$", (root / "requirements.txt").read_text(), re.MULTILINE)
    names = {name.replace("-", "_") for name in ("sigma-kernel", *rooms)}
    return [wheel for wheel in built if wheel.name.partition("-")[0] in names]


# -- steps, in their order ---------------------------------------------------------------------------------------------
def check_start(release: Release) -> None:
    """Check the version, the tools and the repository."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", release.version):
        raise SystemExit(f"{release.version}: not a version of the form 0.2.0.")
    missing = [name for name in TOOLS if find_spec(name) is None]
    if missing:
        raise SystemExit(f"Missing: {', '.join(missing)}. Run `python -m pip install {' '.join(missing)}`.")
    if run("git", "status", "--porcelain", folder=release.folder):
        raise SystemExit("The working tree has changes. Commit or remove them.")
    if run("git", "tag", "--list", f"v{release.version}", folder=release.folder):
        raise SystemExit(f"v{release.version}: the tag exists. Choose another version.")
    if (release.address or read_address(release.folder)).endswith(RESERVED):
        raise SystemExit(
            "The repository has no address yet. Pass --repository URL, which all pages of the release name."
        )
    if not release.since:
        raise SystemExit("No release has a tag yet. Name a commit to upgrade from: --from COMMIT.")


def write_versions(release: Release) -> None:
    """Write the version, and the address of the repository if it is given, into all distributions."""
    set_versions(release.folder, release.version)
    if release.address:
        set_address(release.folder, release.address)


def write_changelog(release: Release) -> None:
    """Move the changes in docs/changes into CHANGELOG.md."""
    python("-m", "towncrier", "build", "--yes", "--version", release.version, folder=release.folder)


def build_wheels(release: Release) -> None:
    """Build all wheels and source distributions into dist/."""
    if list((release.folder / "dist").glob("*.whl")):
        raise SystemExit("dist/ has wheels of another build. Remove them.")
    wheels(release.folder, release.folder / "dist")
    sdists(release.folder, release.folder / "dist")


def check_wheels(release: Release) -> None:
    """Check the metadata of all wheels and source distributions."""
    built = sorted([*(release.folder / "dist").glob("*.whl"), *(release.folder / "dist").glob("*.tar.gz")])
    python("-m", "twine", "check", "--strict", *built, folder=release.folder)


def upgrade(release: Release) -> None:
    """Train with the wheels of the earlier version, upgrade, and resume the run."""
    with TemporaryDirectory() as name:
        place, before = Path(name), Path(name, "before")
        run("git", "archive", "-o", place / "before.tar", release.since, folder=release.folder)
        unpack_archive(place / "before.tar", before)
        earlier = default_set(before, wheels(before, place / "wheels"))
        later = default_set(release.folder, sorted((release.folder / "dist").glob("*.whl")))
        resume_after_upgrade(place, earlier, later)


def resume_after_upgrade(place: Path, earlier: Sequence[Path], later: Sequence[Path]) -> None:
    """Train two epochs with earlier wheels in an environment of its own, and two more with later ones."""
    venv.create(place / "venv", with_pip=False, symlinks=os.name != "nt")
    pip = ("-m", "pip", "--python", place / "venv" / "bin" / "python", "install", "-q")
    sigma = place / "venv" / "bin" / "sigma"
    python(*pip, *earlier, folder=place)
    first = json.loads(run(sigma, "run", "digits", "--epochs", "2", "--json", folder=place))
    python(*pip, "--upgrade", *later, folder=place)
    python(*pip, "--force-reinstall", "--no-deps", *later, folder=place)  # also where the version is the same
    both = json.loads(run(sigma, "resume", first["folder"], "--epochs", "4", "--json", folder=place))
    if (both["status"], both["iterations"]) != ("finished", 2 * first["iterations"]):
        raise SystemExit(f"After the upgrade, a run resumed to {both}; before, it was {first}.")


def tag(release: Release) -> None:
    """Commit and tag the release."""
    run("git", "commit", "-q", "-a", "-m", f"Release {release.version}", folder=release.folder)
    run("git", "tag", "-a", f"v{release.version}", "-m", f"Sigma {release.version}", folder=release.folder)


STEPS: tuple[Callable[[Release], None], ...] = (
    check_start, write_versions, write_changelog, build_wheels, check_wheels, upgrade, tag,
)  # fmt: skip


def take(steps: Sequence[Callable[[Release], None]], release: Release, report: Callable[[str], None]) -> None:
    """Take steps in order, each announced by its docstring; the first that raises ends the release."""
    for number, step in enumerate(steps, 1):
        report(f"{number}/{len(steps)} {step.__doc__}")
        step(release)


def rehearse(release: Release, report: Callable[[str], None]) -> None:
    """Take all steps in a temporary clone, and report the changelog and the wheels."""
    with TemporaryDirectory() as name:
        clone = Path(name, "clone")
        run("git", "clone", "-q", release.folder, clone, folder=release.folder)
        take(STEPS, evolve(release, folder=clone), report)
        report(run("git", "show", "--stat", f"v{release.version}", folder=clone))
        report("\n".join(wheel.name for wheel in sorted((clone / "dist").glob("*.whl"))))
    report("This was a rehearsal; nothing has changed here. Pass --write to release.")


def main(arguments: Sequence[str]) -> None:
    """Release, or rehearse a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--write", action="store_true", help="change this repository, not a temporary clone")
    parser.add_argument("--from", dest="since", help="the commit to upgrade from, instead of the newest tag")
    parser.add_argument("--repository", metavar="URL", default="", help="the address that projects and pages name")
    given = parser.parse_args(arguments)
    since = run("git", "rev-parse", given.since, folder=ROOT).strip() if given.since else last_tag(ROOT)
    release = Release(ROOT, given.version, since, given.repository)
    take(STEPS, release, print) if given.write else rehearse(release, print)


if __name__ == "__main__":
    main(sys.argv[1:])
