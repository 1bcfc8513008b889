"""The steps of a release: versions in a copy of the repository, and an order in which a failure leaves no tag."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
release = SimpleNamespace(**run_path(str(ROOT / "tests" / "installs" / "release.py")))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder with the files of this repository that have a version."""
    for path in [ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]:
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(ROOT)).write_text(path.read_text())
    for path in (ROOT / "sigma_kernel" / "__init__.py", ROOT / "docs" / "plugins.md"):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        (tmp_path / path.relative_to(ROOT)).write_text(path.read_text())
    return tmp_path


def test_a_release_writes_its_version_into_all_distributions(copy):
    release.set_versions(copy, "3.14.1")
    projects = [tomllib.loads(path.read_text())["project"] for path in copy.glob("plugins/*/pyproject.toml")]
    assert {project["version"] for project in projects} == {"3.14.1"}
    assert re.search(r'^__version__ = "3.14.1"$', (copy / "sigma_kernel/__init__.py").read_text(), re.MULTILINE)


def test_after_a_release_nothing_requires_another_minor_version_of_a_distribution(copy):
    release.set_versions(copy, "3.14.1")
    texts = [path.read_text() for path in [*copy.glob("**/*.toml"), copy / "docs/plugins.md"]]
    required = re.findall(r"\"sigma-[a-z-]+(?:\[\w+\])? ?([~=<>!].*?)\"", "\n".join(texts))
    assert len(required) > len(texts)
    assert set(required) == {"~=3.14"}


def test_a_release_changes_nothing_but_versions(copy):
    before = {path: path.read_text() for path in copy.rglob("*.*") if path.is_file()}
    release.set_versions(copy, "3.14.1")
    for path, text in before.items():
        lines = zip(text.splitlines(), path.read_text().splitlines(), strict=True)
        assert all("3.14" in new for old, new in lines if old != new), path


def test_the_version_of_the_plugin_in_the_guide_is_its_own(copy):
    release.set_versions(copy, "3.14.1")
    assert 'version = "0.1.0"' in (copy / "docs/plugins.md").read_text()


def test_the_tag_is_the_last_step_of_a_release():
    assert [step.__name__ for step in release.STEPS] == [
        "check_start", "write_versions", "write_changelog", "build_wheels", "check_wheels", "upgrade", "tag",
    ]  # fmt: skip


def test_a_release_ends_at_the_first_step_that_fails():
    done: list[str] = []

    def fail(given: object) -> None:
        """Fail."""
        raise SystemExit("no")

    def note(given: object) -> None:
        """Take note."""
        done.append("noted")

    lines: list[str] = []
    with pytest.raises(SystemExit, match="no"):
        release.take((note, fail, note), None, lines.append)
    assert done == ["noted"]
    assert lines == ["1/3 Take note.", "2/3 Fail."]


def git(*arguments: str, folder: Path) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a")
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with two tags of releases, another tag, and the tools that a release needs."""
    git("init", "-q", folder=tmp_path)
    git("commit", "-q", "--allow-empty", "-m", "First", folder=tmp_path)
    for name in ("v0.9.0", "v0.10.0", "work"):
        git("tag", name, folder=tmp_path)
    monkeypatch.setitem(release.check_start.__globals__, "TOOLS", ())
    return tmp_path


def test_the_last_tag_is_the_newest_version(repository):
    assert release.last_tag(repository) == "v0.10.0"


@pytest.mark.parametrize(
    ("version", "since", "problem"),
    [
        ("0.11", "v0.10.0", "0.11: not a version of the form 0.2.0."),
        ("0.10.0", "v0.9.0", "v0.10.0: the tag exists. Choose another version."),
        ("0.11.0", "", "No release has a tag yet. Name a commit to upgrade from: --from COMMIT."),
    ],
)
def test_a_release_that_cannot_be_made_is_refused_at_its_start(repository, version, since, problem):
    with pytest.raises(SystemExit, match=re.escape(problem)):
        release.check_start(release.Release(repository, version, since))
    release.check_start(release.Release(repository, "0.11.0", "v0.10.0"))


def test_a_release_without_an_address_of_the_repository_is_refused(repository):
    (repository / "pyproject.toml").write_text('[project.urls]\nRepository = "https://sigma.example"\n')
    git("add", ".", folder=repository)
    git("commit", "-q", "-m", "Project", folder=repository)
    with pytest.raises(SystemExit, match="no address yet. Pass --repository URL"):
        release.check_start(release.Release(repository, "0.11.0", "v0.10.0"))
    release.check_start(release.Release(repository, "0.11.0", "v0.10.0", "https://host/sigma"))


def test_a_release_writes_the_address_into_every_project_and_page(tmp_path):
    for path in release.list_pages(ROOT):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(ROOT)).write_text(path.read_text())
    before = release.read_address(ROOT)
    release.set_address(tmp_path, "https://host/owner/sigma/")
    texts = [path.read_text() for path in release.list_pages(tmp_path)]
    assert len(texts) > 70
    assert [text for text in texts if before in text] == []
    assert all("https://host/owner/sigma" in text for text in texts)
    assert release.read_address(tmp_path) == "https://host/owner/sigma"


def test_a_release_needs_a_clean_working_tree(repository):
    (repository / "file").touch()
    with pytest.raises(SystemExit, match="The working tree has changes"):
        release.check_start(release.Release(repository, "0.11.0", "v0.10.0"))


def test_a_release_names_the_tools_that_are_missing(repository, monkeypatch):
    monkeypatch.setitem(release.check_start.__globals__, "TOOLS", ("json", "not_there"))
    with pytest.raises(SystemExit, match="Missing: not_there. Run `python -m pip install not_there`"):
        release.check_start(release.Release(repository, "0.11.0", "v0.10.0"))


def test_the_default_set_is_what_requirements_txt_lists():
    built = [Path(f"{name}-0.1.0-py3-none-any.whl") for name in ("sigma_kernel", "sigma_layers", "sigma_sklearn")]
    assert release.default_set(ROOT, built) == built[:2]


def test_a_release_moves_the_changes_into_the_changelog(tmp_path):
    pytest.importorskip("towncrier", reason="a release writes the changelog by it")
    for name in ("pyproject.toml", "CHANGELOG.md", "docs/changes/template.jinja"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    for name, text in {"b.fixed.md": "Two\nlines.", "a.fixed.md": "One line.", "c.added.md": "More."}.items():
        (tmp_path / "docs/changes" / name).write_text(f"{text}\n")
    git("init", "-q", folder=tmp_path)
    git("add", ".", folder=tmp_path)
    release.write_changelog(release.Release(tmp_path, "0.11.0", ""))
    before, _, entries = (tmp_path / "CHANGELOG.md").read_text().partition("<!-- releases -->\n")
    assert before == (ROOT / "CHANGELOG.md").read_text().partition("<!-- releases -->\n")[0]
    entries = re.sub(r"\(\d{4}-\d\d-\d\d\)", "(day)", entries)
    assert entries.strip() == "## 0.11.0 (day)\n\n### Added\n\n- More.\n\n### Fixed\n\n- One line.\n- Two\n  lines."
    assert [path.name for path in (tmp_path / "docs/changes").iterdir()] == ["template.jinja"]
