"""The structure of the code: import order, sizes, files."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "sigma_kernel"
ROOMS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
ENGINE = {
    "sigma-curation",
    "sigma-ml",
    "sigma-run",
    "sigma-step",
    "sigma-store",
    "sigma-testing",
    "sigma-text",
    "sigma-training",
}  # distributions that may import all of the kernel
WITHOUT_COMPONENTS = {"sigma-http", *ENGINE} - {"sigma-curation", "sigma-text", "sigma-training"}
PLUGINS = [room for room in ROOMS if room.name not in WITHOUT_COMPONENTS]
GUIDE, DESIGN = ROOT / "docs" / "plugins.md", ROOT / "docs" / "design.md"
ORDER = DESIGN.read_text().partition("in import order")[2].partition("\n## ")[0]
TABLE = re.findall(r"^\| (`.*?) \|", ORDER, re.MULTILINE)
RANK = {name: rank for rank, names in enumerate(TABLE) for name in re.findall(r"`([\w.]+)`", names)}
CUT = (
    "sigma-step",
    "sigma-training",
    "sigma-store",
    "sigma-run",
)  # distributions that were part of the kernel, and keep its rules
IMPORTED_AS = {
    "attrs": {"attrs", "attr"},
    "pillow": {"PIL"},
    "protobuf": {"google"},
    "scikit-learn": {"sklearn"},
    "tensorboardX": {"tensorboardX"},
}  # if the import name differs from the distribution's


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def dotted(path: Path) -> str:
    """Return the import name of a file."""
    project = next(folder for folder in path.parents if (folder / "pyproject.toml").exists())
    return ".".join(path.relative_to(project).with_suffix("").parts).removesuffix(".__init__")


def sources(room: Path) -> list[Path]:
    return sorted((room / room.name.replace("-", "_")).rglob("*.py"))


def modules(package: Path) -> list[Path]:
    """Return the modules of a distribution that have a place in the order: not its exports, script and records."""
    apart = ("__init__.py", "__main__.py", "plugin.py")
    return sorted(path for path in package.rglob("*.py") if path.parent != package or path.name not in apart)


PACKAGES_CUT = [ROOT / "plugins" / name / name.replace("-", "_") for name in CUT]
OF_KERNEL = modules(KERNEL)
MODULES = [*OF_KERNEL, *(path for package in PACKAGES_CUT for path in modules(package))]
NAMES = {dotted(path) for path in (*KERNEL.rglob("*.py"), *(path for room in ROOMS for path in sources(room)))}


def shown(path: Path) -> ast.Module:
    """Return a module as type checkers read it: for a package that exports lazily, its stub."""
    stub = path.with_suffix(".pyi")
    return parsed(stub if stub.exists() else path)


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names of all modules that a tree imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in NAMES else str(node.module)


def inside(name: str) -> bool:
    return name.partition(".")[0] in ("sigma_kernel", *(package.name for package in PACKAGES_CUT))


def part(name: str) -> str:
    """Return the part of the kernel that a module belongs to, or of another distribution, by its full name."""
    top, _, rest = name.partition(".")
    return rest.partition(".")[0] if top == "sigma_kernel" else f"{top}.{rest.partition('.')[0]}"


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def declared(pyproject: Path, *extras: str) -> set[str]:
    """Return the import names of a project's dependencies, with some of its extras."""
    project = tomllib.loads(pyproject.read_text())["project"]
    optional = [line for extra in extras for line in project.get("optional-dependencies", {}).get(extra, [])]
    names = [Requirement(line).name for line in [*project.get("dependencies", []), *optional]]
    return {name for one in names for name in IMPORTED_AS.get(one, {one.replace("-", "_").lower()})}


def faults(paths: Iterable[Path], check: Callable[[Path], Any]) -> dict[str, Any]:
    """Return what a check finds, by the file in which it finds something."""
    return {str(path.relative_to(ROOT)): found for path in paths if (found := check(path))}


# -- imports -----------------------------------------------------------------------------------------------------------
def test_a_module_imports_only_modules_before_it_in_the_order():
    def above(path: Path) -> set[str]:
        rank = RANK[part(dotted(path))]
        return {name for name in filter(inside, imported(shown(path))) if RANK.get(part(name), 0) > rank}

    assert faults(MODULES, above) == {}


def test_kernel_modules_import_only_the_version_from_the_lazy_exports():
    def lazy(path: Path) -> set[str]:
        found = [x for x in ast.walk(parsed(path)) if isinstance(x, ast.ImportFrom) and x.module == "sigma_kernel"]
        names = {alias.name for node in found for alias in node.names if f"sigma_kernel.{alias.name}" not in NAMES}
        return names - {"__version__"}

    assert faults(OF_KERNEL, lazy) == {}


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return names that form a cycle, or none."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        found = next(filter(None, (visit(x, [*trail, name]) for x in sorted(graph.get(name, ())) if x not in done)), [])
        done.add(name)
        return found

    return next(filter(None, (visit(name, []) for name in graph)), [])


PACKAGES = {"sigma_kernel": OF_KERNEL, **{room.name.replace("-", "_"): sources(room) for room in ROOMS}}
FOLDERS = [path.parent for paths in PACKAGES.values() for path in paths if path.name == "__init__.py"]


@pytest.mark.parametrize("name", PACKAGES)
def test_there_are_no_import_cycles(name):
    graph = {dotted(path): {x for x in imported(shown(path)) if x in NAMES} for path in PACKAGES[name]}
    assert circle(graph) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: dotted(folder / "__init__.py"))
def test_the_folders_within_a_folder_import_each_other_in_one_direction(folder):
    name, graph = dotted(folder / "__init__.py"), defaultdict[str, set[str]](set)

    def entry(module: str) -> str | None:
        """Return the file or folder of this folder that a module belongs to."""
        return module.removeprefix(f"{name}.").partition(".")[0] if module.startswith(f"{name}.") else None

    for path in folder.rglob("*.py"):
        mine = entry(dotted(path))
        if mine is not None:
            graph[mine] |= {other for x in imported(shown(path)) if (other := entry(x)) not in (None, mine)}
    assert circle(graph) == []


def test_a_cycle_of_imports_is_found_and_named():
    assert circle({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_there_are_no_imports_inside_functions():
    assert faults(MODULES, lambda path: [name for function in functions(path) for name in imported(function)]) == {}


def test_only_components_lazy_exports_and_optional_libraries_are_imported_by_name():
    allowed = {
        "sigma_kernel.plugins.catalogue",
        "sigma_kernel.plugins.own",
        "sigma_kernel.lazy",
        "sigma_training.optional",
    }
    users = {dotted(path) for path in MODULES if re.search(r"import_module|__import__|exec_module", path.read_text())}
    assert users <= allowed


def test_the_kernel_imports_what_it_declares_and_no_plugin():
    allowed = {"sigma_kernel", *declared(ROOT / "pyproject.toml"), *sys.stdlib_module_names}

    def undeclared(path: Path) -> set[str]:
        names = {name.partition(".")[0] for name in imported(parsed(path))}
        return names - allowed

    assert faults(OF_KERNEL, undeclared) == {}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_imports_the_kernel_and_what_it_declares(room):
    extra = declared(
        room / "pyproject.toml", "peers", "run", "selftest", "step", "store", "tables", "training"
    )  # libraries of measurements, and of suites
    allowed = {room.name.replace("-", "_"), *extra, *sys.stdlib_module_names}
    for path in sources(room):
        undeclared = {name.partition(".")[0] for name in imported(parsed(path))} - allowed
        assert not undeclared, f"{path.relative_to(ROOT)} imports {undeclared}"


@pytest.mark.parametrize("room", PLUGINS, ids=lambda room: room.name)
def test_a_plugin_file_imports_nothing_heavy(room):
    plugin = room / room.name.replace("-", "_") / "plugin.py"
    names = {name.partition(".")[0] for name in imported(parsed(plugin))}
    assert names <= {"sigma_kernel", *sys.stdlib_module_names}


# -- public modules ----------------------------------------------------------------------------------------------------
PAGES_OF_MODULES = (GUIDE.read_text(), DESIGN.read_text().partition("## Public modules")[2].partition("\n## ")[0])
PUBLIC, LISTED = (
    re.findall(r"^\| `(sigma_(?:kernel|run|store)[.\w]*)` \|", page, re.MULTILINE) for page in PAGES_OF_MODULES
)
FOR_COMMANDS = {"sigma_run.config", "sigma_run.launcher", "sigma_run.overview", "sigma_run.study"}
READERS = [path for room in ROOMS if room.name not in ENGINE for path in sorted(room.rglob("*.py"))]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *(room / "README.md" for room in ROOMS)]


@cache
def exported(module: str) -> set[str]:
    """Return the public names of a public module: what it lists, or else what it defines or imports as a name."""
    found = import_module(module)
    names = {name for name, value in vars(found).items() if not name.startswith("_") and not inspect.ismodule(value)}
    return {"__version__", *getattr(found, "__all__", names)}


def beyond(text: str) -> set[str]:
    """Return what a text imports from the kernel that is not public."""
    found = {
        name for name in re.findall(r"\b(?:from|import) (sigma_(?:kernel|run|store)[.\w]*)", text) if name not in PUBLIC
    }
    for module, names in re.findall(
        r"^ *from (sigma_(?:kernel|run|store)[.\w]*) import (\(.*?\)|.*?$)", text, re.M | re.S
    ):
        for name in re.sub(r"#.*?$|[()]", "", names, flags=re.M).split(","):
            name = name.partition(" as ")[0].strip()
            if module in PUBLIC and name and name not in exported(module) and f"{module}.{name}" not in PUBLIC:
                found.add(f"{module}.{name}")
    return found


def test_rooms_and_documents_import_public_names_of_the_kernel_only():
    assert faults([*READERS, *PAGES], lambda path: beyond(path.read_text())) == {}


def test_an_import_of_a_private_module_or_name_is_found():
    text = "if TYPE_CHECKING:\n    from sigma_kernel.clock import every\nimport sigma_kernel.graph.node\n"
    assert beyond(text) == {"sigma_kernel.clock", "sigma_kernel.graph.node"}
    text = (
        "from sigma_kernel.graph import (\n    Node,  # a node\n    rewriting as r,\n)\nfrom sigma_kernel import when"
    )
    assert beyond(text) == {"sigma_kernel.graph.rewriting"}


@pytest.mark.parametrize("room", PLUGINS, ids=lambda room: room.name)
def test_only_rooms_with_a_command_use_configurations_and_the_terminal(room):
    commands = 'Component("verb"' in (room / room.name.replace("-", "_") / "plugin.py").read_text()
    used = {name for path in sources(room) for name in imported(parsed(path))}
    assert commands or FOR_COMMANDS.isdisjoint(used)


def test_the_guide_and_the_design_list_the_same_public_modules():
    assert PUBLIC == LISTED
    assert set(PUBLIC) >= FOR_COMMANDS


@pytest.mark.rooms
def test_a_valid_run_does_not_import_what_only_errors_need(tmp_path):
    spared = "numpy.ma", "pooch", "pytest", "sigma_run.launcher.partial"
    arguments = [
        "run",
        "digits",
        "--quiet",
        "--set",
        "run.backend=numpy",
        "--set",
        "hooks.finish.when=iteration reaches 1",
    ]
    code = f"""if True:
        import sys
        from sigma_run.__main__ import main
        code = main({arguments})
        print(*[name for name in {spared} if name in sys.modules], file=sys.stderr)
        sys.exit(code)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (0, "")


# -- state -------------------------------------------------------------------------------------------------------------
OWN = ("self", "cls")
FLOORS = 14  # of training: the modules on its longest import chain
FOREIGN = {  # assignments to fields of other objects
    "config.building": {"environment.monitors"},
    "config.reading": {"configuration.document"},  # a function's own table
    "config.trained": {"chosen.backend", "chosen.learned"},  # settings of objects that it has just made
    "launcher.group": {"warnings.showwarning"},
    "moments.replica": {"warnings.showwarning"},
    "network.architecture": {"copy._called"},
    "notation": {"layer._called"},
    "scanning": {"word.at"},
    "study.worker": {"warnings.showwarning"},
}


def foreign(path: Path) -> set[str]:
    """Return the attributes that a file assigns to, or deletes, on anything but ``self`` or a class."""
    found = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute))
    return {
        ast.unparse(a) for a in found if not isinstance(a.ctx, ast.Load) and ast.unparse(a.value) not in ("self", "cls")
    }


def test_no_module_assigns_to_the_fields_of_other_objects():
    assert {dotted(path).partition(".")[2]: found for path in MODULES if (found := foreign(path))} == FOREIGN


def test_the_import_chain_of_training_is_short():
    names = {dotted(path): path for path in MODULES if dotted(path).startswith("sigma_training.")}
    below = {name: {other for other in imported(parsed(path)) if other in names} for name, path in names.items()}

    @cache
    def floor(name: str) -> int:
        return 1 + max(map(floor, below[name]), default=0)

    assert max(map(floor, names)) <= FLOORS


PARTS = {  # of a session, and those that each is built on
    "applying": {"checkpoint_policy", "hook_runner"},
    "checkpoint_policy": set(),
    "hook_runner": {"checkpoint_policy"},
    "loop": {"checkpoint_policy", "hook_runner", "replayer"},
    "replayer": {"hook_runner"},
    "session": {"applying", "checkpoint_policy", "hook_runner", "loop", "replayer"},
}
PLANNING = {"planning": {"checkpoint_policy"}}  # no part, but the run that commands plan with


def test_a_part_of_a_session_is_imported_only_by_those_that_are_built_on_it():
    names = {f"sigma_training.session.{name}": name for name in PARTS}
    users = {dotted(path): {names[x] for x in imported(parsed(path)) if x in names} for path in MODULES}
    modules = {f"sigma_training.session.{name}": below for name, below in (PARTS | PLANNING).items()}
    others = {user: found for user, found in users.items() if found and found != modules.get(user)}
    assert {user for user, found in others.items() if found != {"session"}} == set()


# -- sizes -------------------------------------------------------------------------------------------------------------
SOURCES = [*KERNEL.rglob("*.py"), *(path for room in ROOMS for path in sources(room))]


def test_functions_stay_within_40_lines():
    long = faults(SOURCES, lambda path: {one.name: lines(one) for one in functions(path) if lines(one) > 40})
    assert long == {}


def code(path: Path) -> int:
    """Count lines of code, without blank lines, comments and docstrings."""
    owners = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    strings = (node.body[0] for node in owners if node.body and ast.get_docstring(node, clean=False) is not None)
    prose = {number for string in strings for number in range(string.lineno, (string.end_lineno or 0) + 1)}
    numbered = enumerate(path.read_text().splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in prose for n, line in numbered)


BUDGETS = {
    ROOT / name: int(most.replace(",", ""))
    for name, most in re.findall(r"^\| `([\w/-]+)`.*? \| ([\d,]+) \|$", DESIGN.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize("folder", BUDGETS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_part_of_the_kernel_stays_within_its_budget(folder):
    apart = [other for other in BUDGETS if folder in other.parents]
    paths = [path for path in folder.rglob("*.py") if not any(other in path.parents for other in apart)]
    print(f"{folder.relative_to(ROOT)}: {sum(map(code, paths)):,} of {BUDGETS[folder]:,} lines of code")
    assert 0 < sum(map(code, paths)) <= BUDGETS[folder]


def test_the_design_lists_budgets():
    assert {KERNEL, ROOT / "plugins" / "sigma-testing" / "sigma_testing"} <= BUDGETS.keys()


def test_half_of_all_functions_have_8_lines_or_fewer():
    for paths in ([*KERNEL.rglob("*.py")], *(sources(room) for room in ROOMS)):
        lengths = [lines(function) for path in paths for function in functions(path)]
        assert median(lengths or [0]) <= 8, paths[0].parent


MOST_METHODS, MOST_LINES = 30, 300  # of a class; conformance suites may have more


def methods(node: ast.ClassDef) -> set[str]:
    """Return the methods and properties of a class, operators and the like aside."""
    names = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    return {name for name in names if not (name.startswith("__") and name.endswith("__"))}


def large_classes(path: Path) -> dict[str, tuple[int, int]]:
    """Return the classes of a file that have too many methods or lines, each with its numbers."""
    classes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)]
    sizes = {node.name: (len(methods(node)), (node.end_lineno or 0) - node.lineno + 1) for node in classes}
    kept = {name: size for name, size in sizes.items() if not name.endswith("Suite")}
    return {f"{dotted(path)}.{n}": (m, k) for n, (m, k) in kept.items() if m > MOST_METHODS or k > MOST_LINES}


def test_no_class_has_more_than_30_methods_or_300_lines():
    large = {name: size for path in SOURCES for name, size in large_classes(path).items()}
    assert large == {}


@pytest.mark.parametrize(
    ("head", "body", "large"),
    [
        ("Wide", "".join(f"    def a{i}(self): ...\n" for i in range(31)), True),
        ("Fit", "".join(f"    def a{i}(self): ...\n" for i in range(30)), False),
        ("Algebra", "".join(f"    def __a{i}__(self): ...\n" for i in range(31)), False),
        ("Accessor", "    @property\n    def a(self): ...\n    @a.setter\n    def a(self, value): ...\n" * 16, False),
        ("Long", "    x = 0\n" * 300, True),
        ("LongSuite", "    x = 0\n" * 300, False),
    ],
)
def test_a_class_that_is_too_large_is_found(head, body, large, tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "own.py").write_text(f"class {head}:\n{body}")
    assert list(large_classes(tmp_path / "own.py")) == [f"own.{head}"] * large


# -- names -------------------------------------------------------------------------------------------------------------
def test_file_names_are_descriptive():
    assert {path.stem for path in SOURCES}.isdisjoint({"utils", "util", "helpers", "misc", "common"})


def test_names_are_british():
    american = (  # but in titles and others' names
        r"(?i:optimizer|(?<!graph\.)initializer|regularizer|normalize)|(?<!_)normalization"
    )
    assert faults(SOURCES, lambda path: re.findall(american, path.read_text())) == {}


def test_no_two_public_classes_have_the_same_name():
    places = defaultdict[str, list[str]](list)
    for path in SOURCES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(dotted(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_code_has_no_todo():
    todo = r"\b(TODO|FIXME|XXX|raise NotImplementedError)\b"
    assert faults(SOURCES, lambda path: re.findall(todo, path.read_text())) == {}


def swallowing(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (len(handler.body) == 1 and isinstance(handler.body[0], ast.Pass))


def test_the_code_swallows_no_exception():
    def lines_of_handlers(path: Path) -> list[int]:
        handlers = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.ExceptHandler))
        return [handler.lineno for handler in handlers if swallowing(handler)]

    assert faults(SOURCES, lines_of_handlers) == {}


# -- components --------------------------------------------------------------------------------------------------------
TABLE_OF_ROOMS = json.loads((KERNEL / "plugins" / "rooms.json").read_text())
LOOKUPS = {"load", "offers", "resolve", "_resolve", "resolve_components"}  # take a kind and a name


def looked_up(tree: ast.Module) -> set[str]:
    """Return the names by which code looks components up, or gives the type of one, where they stand as strings."""
    nodes = [*ast.walk(tree)]
    types = [
        value
        for node in nodes
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "type"
    ]
    calls = (node for node in nodes if isinstance(node, ast.Call) and called(node) in LOOKUPS)
    given = [argument for call in calls for argument in call.args]
    found = {node.value for node in (*types, *given) if isinstance(node, ast.Constant)}
    return {name for name in found if isinstance(name, str)}


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def components_of_rooms(tree: ast.Module) -> set[str]:
    """Return the components of rooms, and the rooms, that code names."""
    names = {name for kinds in TABLE_OF_ROOMS["offered"].values() for words in kinds.values() for name in words.split()}
    spared = prose(tree)
    strings = (x.value for x in ast.walk(tree) if isinstance(x, ast.Constant) and id(x) not in spared)
    rooms = {x for x in strings if isinstance(x, str) and x.partition(":")[0] in TABLE_OF_ROOMS["offered"]}
    return rooms | (looked_up(tree) & names)


def test_the_kernel_names_no_component_of_a_room():
    assert faults(MODULES, lambda path: components_of_rooms(parsed(path))) == {}


def test_a_component_that_the_kernel_names_is_found():
    for text in (
        "x = {'type': 'arrays'}",
        "load('hook', 'verify')",
        "a.resolve('hook', 'verify')",
        "ROWS = 'sigma-data:saved'",
    ):
        assert components_of_rooms(ast.parse(text)), text
    assert not components_of_rooms(ast.parse("resolve('dataset', {'type': 'default:arrays', 'columns': 'x'})"))


# -- where to look -----------------------------------------------------------------------------------------------------
def test_the_files_that_the_design_names_exist():
    section = DESIGN.read_text().partition("## Where to look")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w./-]+\.(?:py|js))`", section)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).is_file()] == []


# -- backends ----------------------------------------------------------------------------------------------------------
BACKENDS = {  # by the room that offers it; one that is used by name only is an option's, --debug-ops
    name: room
    for room, kinds in json.loads((KERNEL / "plugins" / "rooms.json").read_text())["offered"].items()
    for name in kinds.get("backend", "").split()
    if name != "debug"
}
COMPARES = "sigma-bench"  # it names the libraries with which it compares
LIBRARIES = {  # libraries whose name a backend has, where a module speaks of the library
    "graph.namespace": {"numpy"},  # the array namespace
    "sigma_training.compatibility": {"numpy"},  # whose version is recorded
    "sigma_testing.launching": {"numpy", "torch", "jax"},  # that take long to import
    "sigma_run.published.probe": {"numpy"},  # whose random numbers an import may change
    "sigma_run.published.watching": {"numpy"},
    "sigma_testing.plugin": {"numpy"},
    "sigma_backend_numba.lower.kernels": {"numpy"},  # a mode of the compiler
}


def own(path: Path) -> str:
    """Return the room of a file; empty for the kernel."""
    return next((part for part in path.relative_to(ROOT).parts if part.startswith("sigma-")), "")


def prose(tree: ast.Module) -> set[int]:
    """Return the strings that are documentation, by identity: they are statements of their own."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} & {
        id(node) for node in ast.walk(tree) if isinstance(node, ast.Constant)
    }


def words(node: ast.AST) -> list[str]:
    """Return the words of a node's own text: of a string, or of the names that it uses."""
    fields = [value for name, value in ast.iter_fields(node) if name in ("id", "attr", "arg", "name", "module")]
    text = [node.value] if isinstance(node, ast.Constant) else fields
    return [word.lower() for one in text if isinstance(one, str) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", one)]


def named_backends(tree: ast.Module, known: Mapping[str, str]) -> set[str]:
    """Return the backends that code names in strings and in identifiers, but not in its documentation.

    NumPy is the library in which every module holds arrays: it is the backend if a string is just its name.
    """
    spared, found = prose(tree), set()
    for node in ast.walk(tree):
        if id(node) not in spared:
            found |= {word for word in words(node) if word in known and word != "numpy"}
            found |= {"numpy"} & {*known} if isinstance(node, ast.Constant) and node.value == "numpy" else set()
            found |= {x for x in known if isinstance(node, ast.ImportFrom) and f"sigma_backend_{x}" in str(node.module)}
    return found


def test_no_module_names_a_backend_of_another_room():
    found: dict[str, set[str]] = {}
    for path in (path for path in SOURCES if own(path) != COMPARES):
        others = {name: room for name, room in BACKENDS.items() if room != own(path)}
        if named := named_backends(parsed(path), others):
            found[dotted(path).removeprefix("sigma_kernel.")] = named
    assert found == LIBRARIES


def test_a_backend_that_is_named_in_a_string_or_an_identifier_is_found():
    for text in ("backend = 'numpy'", "f(numba=1)", "use_torch()", "x.JaxBackend", "say('install numba')"):
        assert named_backends(ast.parse(text), BACKENDS), text
    assert named_backends(ast.parse("from sigma_backend_numpy import NumpyBackend"), BACKENDS) == {"numpy"}
    for text in ("import numpy as np", "numpy_namespace()", "def f():\n    'As in torch.'"):
        assert not named_backends(ast.parse(text), BACKENDS), text
