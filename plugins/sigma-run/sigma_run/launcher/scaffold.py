"""``sigma plugins new``: write the distribution of a plugin, with a component, its tests, a licence and CI."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from string import Template
from typing import NamedTuple

from sigma_kernel import __version__
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.lazy import HEADER
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.specs import API_VERSION, VERBS
from sigma_run.published.naming import check_component, check_distribution, check_objects

FOLDER = Path(__file__).with_name("templates")
DECLARED = f'[project.entry-points."{VERBS}"]'
SERIES = __version__.rpartition(".")[0]  # the first minor version that a new plugin accepts
FUNCTIONS = ("activation", "lowering", "op", "panel", "recipe", "verb")  # kinds whose component is no class
VARIANTS = {  # templates besides that of a kind
    "cost": "layer",
    "joint-optimiser": "optimiser",
    "stateful-optimiser": "optimiser",
    "transform": "modifier",
    "transport": "operator",
}
WIDTH = 120  # of a line, as pyproject.toml sets it
SENTENCE = re.compile(r'[A-Z0-9]([^\s"\\]| (?! )){0,100}\.')  # as PluginSuite has it, and fit for a string of code
FILES = {  # of a distribution, beside its component and the tests of that, with their templates
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "LICENSE": "LICENSE",
    ".gitignore": "gitignore",
    ".github/workflows/tests.yml": "tests.yml",
    ".github/workflows/release.yml": "release.yml",
    "$package/__init__.py": "exports",
    "$package/plugin.py": "records",
    "tests/test_plugin.py": "suite",
}

REQUIRED = ("attrs >=24.1", "numpy >=2.1", f"sigma-kernel ~={SERIES}")
LIBRARIES = {
    "encoder": "pyarrow >=17.0",
    "store": f"sigma-store ~={SERIES}",
    "trainer": f"sigma-training ~={SERIES}",
    "verb": "click >=8.1.7",
}  # that a component of a kind needs besides
EXTRAS = {  # of sigma-testing, by what its suites need besides
    "run": ("recipe", "verb"),
    "store,training": ("command", "trainer"),
    "tables": ("encoder",),
    "training": (
        "configuration", "generator", "hook", "merger", "metric", "monitor", "operator", "panel", "rewriting",
    ),
}  # fmt: skip


class Owner(NamedTuple):
    """Who publishes a distribution: the author that its licence names, and the address of its repository."""

    author: str = ""
    repository: str = ""

    def complete(self, name: str) -> Owner:
        """Return the owner of the distribution ``name``, with what was left out guessed from it."""
        first = name.partition("-")[0]
        author, repository = self.author or f"The {name} authors", self.repository.rstrip("/")
        for what, text in (("--author", author), ("--repository", repository)):
            if not text.isprintable() or {*text} & {'"', "\\"}:
                raise SigmaConfigError(f"{what} {text!r}: has quotes or control characters. Leave them out.")
        if repository and not re.fullmatch(r"https?://\S++", repository):
            raise SigmaConfigError(f"--repository {repository!r}: not an address. Write https://HOST/OWNER/{name}.")
        return Owner(author, repository or f"https://github.com/{first}/{name}")


def templates() -> list[str]:
    """Return the names of all templates: of each kind, and variants of some."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def kinds() -> list[str]:
    """Return the kinds of component for which there is a template."""
    return [name for name in templates() if name not in VARIANTS]


def create(
    parent: Path, name: str, template: str, component: str, owner: Owner | None = None, summary: str = ""
) -> Path:
    """Write the distribution ``name`` into a new directory below ``parent``, and return that.

    ``template`` is the kind of its component, or a variant of one, such as ``cost``; ``summary`` says what it does, by
    default that of the template. Raises SigmaConfigError for a name that cannot be one, or would hide another, for a
    summary that is no sentence, and for a directory that exists or cannot be written.
    """
    folder = parent / name
    check_distribution(name)
    kind = VARIANTS.get(template, template)
    component = component or _free(kind, _name_component(name, template))
    files = texts(name, template, component, owner or Owner(), summary)
    if folder.exists():
        raise SigmaConfigError(f"{folder}: already exists. Choose another name.")
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SigmaConfigError(f"{folder}: cannot be written: {error.strerror}. Choose another --folder.") from error
    return folder


def _name_component(name: str, template: str) -> str:
    """Return the last word of a distribution's name, or more words if that cannot be the name of a component."""
    words = name.removeprefix("sigma-").replace("-", "_")
    last = words.rpartition("_")[2]
    possible = (component for component in (last, words) if _is_possible(name, template, component))
    return next(possible, f"my_{last}")


def _is_possible(name: str, template: str, component: str) -> bool:
    """Return whether a component may have a name: its files hide nothing."""
    try:
        return bool(texts(name, template, component, Owner()))
    except SigmaConfigError:
        return False


def _free(kind: str, component: str) -> str:
    """Return the name of a component that no installed plugin offers; raise SigmaConfigError if one does."""
    for record in catalogue().components(kind):
        if record.name == component:
            offer = f"{kind} {component!r}: {record.distribution} offers it already"
            raise SigmaConfigError(f"{offer}. Pass --component with another name, or with this one to compete.")
    return component


def texts(name: str, template: str, component: str, owner: Owner, summary: str = "") -> dict[str, str]:
    """Return the files of a distribution by their paths."""
    check_component(component)
    _check_summary(summary)
    words = _words(name, template, component, summary) | _words_of_owner(owner.complete(name))
    _, component_text, tests = _parts(template)
    written = {path: (FOLDER / "project" / f"{file}.txt").read_text("utf-8") for path, file in FILES.items()}
    place, test = f"$package/{words['module']}.py", f"tests/test_{words['name']}.py"
    written |= {
        "$package/__init__.pyi": HEADER + "$stubs",
        "$package/py.typed": "",
        place: f'"""$summary"""\n\n{component_text}',
        test: tests,
    }
    filled = {path: Template(text).substitute(words) for path, text in written.items()}
    check_objects(component, words["object"], words["package"], filled[place], filled[test])
    return {Template(path).substitute(words): text for path, text in filled.items()}


def _check_summary(summary: str) -> None:
    if summary and not SENTENCE.fullmatch(summary):
        raise SigmaConfigError(
            f"--summary {summary!r}: not a sentence of at most 102 characters without quotes and backslashes. Write it "
            "as 'Multiply each feature by a trained number.'"
        )


def _words(name: str, template: str, component: str, summary: str) -> dict[str, str]:
    """Return the values of the templates' placeholders."""
    kind, summary = VARIANTS.get(template, template), summary or _parts(template)[0].strip()
    title = "".join(word.capitalize() for word in component.split("_"))
    module = f"{component}_{kind}" if kind in FUNCTIONS else component
    place = f"{name.replace('-', '_')}.{module}"
    offered = {component: (kind, component if kind in FUNCTIONS else title)}
    if kind == "lowering":  # of an op of the same plugin
        offered = {component: ("op", component), f"{component}.numpy": (kind, f"{component}_of_array")}
    records = [(of, full, f"{place}:{thing}", summary) for full, (of, thing) in offered.items()]
    return {
        "distribution": name,
        "package": name.replace("-", "_"),
        "kind": kind,
        "name": component,
        "Name": title,
        "object": offered[component][1],
        "module": module,
        "commands": f'\n{DECLARED}\n{component} = "{place}:{component}"\n' if kind == "verb" else "",
        "records": "".join(map(_record, records)),
        "stubs": "".join(f"from {place} import {thing} as {thing}\n" for _, thing in offered.values()),
        "offered": [*offered][-1],
        "summary": summary,
        "api": API_VERSION,
        **_requirements(kind, template),
    }


def _words_of_owner(owner: Owner) -> dict[str, str]:
    return {"author": owner.author, "repository": owner.repository, "year": str(date.today().year)}


def _requirements(kind: str, template: str) -> dict[str, str]:
    """Return what a distribution requires, and what its tests do, as items of TOML arrays."""
    _, code, tests = _parts(template)
    rooms, more = (re.findall(r'"(sigma-[a-z-]++)"', text) for text in (code, tests))
    more = [*more, "sigma-ml"] if kind == "recipe" else more  # it is tried with the default set
    extra = next((f"[{extra}]" for extra, kinds in EXTRAS.items() if kind in kinds), "")
    needed = [*REQUIRED, *([LIBRARIES[kind]] if kind in LIBRARIES else []), *(f"{room} ~={SERIES}" for room in rooms)]
    testing = ["pytest >=8.2", f"sigma-testing{extra} ~={SERIES}", *(f"{room} ~={SERIES}" for room in more)]
    return {"dependencies": _quote_items(needed), "testing": _quote_items(testing)}


def _quote_items(lines: Sequence[str]) -> str:
    return ", ".join(f'"{line}"' for line in lines)


def _record(fields: Sequence[str]) -> str:
    """Return the record of a component as code, as a formatter would break it."""
    indent = " " * 8
    if len(line := f"{indent}Component({_quote_items(fields)}),") <= WIDTH:
        return f"{line}\n"
    if len(inner := f"{indent}    {_quote_items(fields)}") > WIDTH:
        inner = "\n".join(f'{indent}    "{text}",' for text in fields)
    return f"{indent}Component(\n{inner}\n{indent}),\n"


def _parts(template: str) -> list[str]:
    """Return the summary, the component and the tests of a template."""
    return re.split(r"^=== \w++\n", (FOLDER / f"{template}.txt").read_text("utf-8"), flags=re.MULTILINE)
