"""The distributions that the kernel was cut into: which module belongs to which, and which may import which."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "sigma_kernel"
MAY_IMPORT = {  # besides itself
    "leaves": (),
    "graph": ("leaves",),
    "kernel": ("leaves", "graph"),
    "store": ("leaves", "graph", "kernel"),
    "step": ("leaves", "graph", "kernel"),
    "training": ("leaves", "graph", "kernel", "step"),
    "curation": ("leaves", "graph", "kernel", "step", "training"),
    "text": ("leaves", "graph", "kernel", "step", "training"),
    "run": ("leaves", "graph", "kernel", "step", "training", "store"),
    "testing": ("leaves", "graph", "kernel"),
    "suites of metrics": ("leaves", "graph", "kernel", "testing", "step"),  # behind an extra, as the next ones
    "suites of training": ("leaves", "graph", "kernel", "testing", "step", "training"),
    "suites of stores": ("leaves", "graph", "kernel", "testing", "step", "training", "store"),
    "suites of commands": ("leaves", "graph", "kernel", "testing", "run"),
    "suites of groups": ("leaves", "graph", "kernel", "testing", "step", "training", "run", "suites of training"),
}
BELONGS = {  # by prefix, the longest that fits; what is not listed stays in the kernel
    "errors": "leaves",
    "lazy": "leaves",
    "graph": "graph",
    "functions": "graph",
    "step": "step",
    "training": "training",
    "curation": "curation",
    "run": "run",
    "store": "store",
    "testing": "testing",
    "testing.group": "suites of training",
    "testing.hooks": "suites of training",
    "testing.metrics": "suites of metrics",
    "testing.rewritings": "suites of metrics",
    "testing.steering": "suites of training",
    "testing.watching": "suites of training",
    "testing.commanding": "suites of training",
    "testing.configurations": "suites of training",
    "testing.generators": "suites of training",
    "testing.trainers": "suites of training",
    "testing.transports": "suites of training",
    "testing.transports.training": "suites of groups",
    "testing.checkpoints": "suites of stores",
    "testing.journals": "suites of stores",
    "testing.launching": "suites of commands",
    "text": "text",
}


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(KERNEL).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MOVED = {  # distributions by now: their modules are named by the last word of their package
    name: ROOT / "plugins" / f"sigma-{name}" / f"sigma_{name}"
    for name in ("curation", "run", "step", "store", "testing", "text", "training")
}
MODULES = {dotted(path): path for path in KERNEL.rglob("*.py")}
MODULES |= {
    f"{name}.{'.'.join(path.relative_to(folder).with_suffix('').parts)}".removesuffix(".__init__"): path
    for name, folder in MOVED.items()
    for path in folder.rglob("*.py")
}


def distribution(module: str) -> str:
    """Return the distribution that a module will belong to."""
    fitting = [prefix for prefix in BELONGS if f"{module}.".startswith(f"{prefix}.")]
    return BELONGS[max(fitting, key=len)] if fitting else "kernel"


def imported(path: Path) -> set[tuple[str, str]]:
    """Return what a module imports from these distributions: modules, and names in them."""
    found = set[tuple[str, str]]()
    for node in ast.walk(ast.parse(path.read_text())):
        top, _, rest = str(getattr(node, "module", "")).partition(".")
        if isinstance(node, ast.ImportFrom) and top in ("sigma_kernel", *(f"sigma_{name}" for name in MOVED)):
            base = rest if top == "sigma_kernel" else f"{top.removeprefix('sigma_')}.{rest}".rstrip(".")
            for one in node.names:
                inner = f"{base}.{one.name}".lstrip(".")
                found.add((inner, "") if inner in MODULES else (base, one.name))
    return found


def against_the_order() -> set[str]:
    found = set[str]()
    for module, path in MODULES.items():
        mine = distribution(module)
        for other, name in imported(path):
            if distribution(other) not in (mine, *MAY_IMPORT[mine]):
                found.add(f"{module} <- {other}: {name}".rstrip(": "))
    return found


def test_nothing_is_imported_against_the_order_of_distributions():
    assert against_the_order() == set()


def test_every_prefix_of_the_plan_is_a_module():
    assert {prefix for prefix in BELONGS if not any(f"{one}.".startswith(f"{prefix}.") for one in MODULES)} == set()
