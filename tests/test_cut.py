"""The distributions that the kernel is cut into: which module belongs to which, and what still has to be untied.

Code moves into a distribution once nothing below it imports it any more. ``LEFT`` lists every name that is imported
against the order; an edge that is added or removed fails the test, so that the list is always true, and shrinks.
"""

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
    "training": ("leaves", "graph", "kernel"),
    "curation": ("leaves", "graph", "kernel", "training"),
    "text": ("leaves", "graph", "kernel", "training"),
    "run": ("leaves", "graph", "kernel", "training", "store"),
    "testing": ("leaves", "graph", "kernel"),
}
BELONGS = {  # by prefix, the longest that fits; what is not listed stays in the kernel
    "errors": "leaves",
    "lazy": "leaves",
    "graph": "graph",
    "functions": "graph",
    "courses": "kernel",
    "minimisation": "training",
    "totals": "training",
    "training": "training",
    "units": "training",
    "views": "training",
    "training.data.edits": "curation",
    "training.commands.editing": "curation",
    "run": "run",
    "store": "store",
    "testing": "testing",
    "text": "text",
}
LEFT = """
courses <- training.commands.pause: Pause
courses <- training.commands.stop: StopTraining
courses <- training.runs.summary: Summary
courses <- training.session.progress: Phase
courses <- training.session.session: Session
courses <- training.trainer: Goals
courses <- training.trainer: Trainer
environment <- training.arguments: BELONGS
environment <- training.commands.save: Save
environment <- training.commands.stop: StopTraining
environment <- training.components: SETTINGS
environment <- training.history.metrics: History
environment <- training.history.recorder: Recorder
environment <- training.runs.resume
environment <- training.runs.summary: Summary
environment <- training.runs.summary: reached
environment <- training.runs.summary: summarise
environment <- training.session.session: Session
environment <- training.trainer: Goals
environment <- training.trainer: Trainer
environment <- views: EnvironmentView
records <- training.runs.summary: Summary
testing.checkpoints <- store.checkpoints.store: read
testing.checkpoints <- store.checkpoints.store: list_checkpoints
testing.checkpoints <- store.checkpoints.store: write
testing.checkpoints <- training.step.model: LAYERS
testing.hooks <- training.hooks.order: by_the_clock
testing.hooks <- training.hooks.order: reads
testing.journals <- store.chain: chain_row
testing.journals <- store.chain: hash_of
testing.journals <- store.checkpoints.store: MANIFEST
testing.journals <- store.checkpoints.store: SEAL
testing.journals <- store.files: digest
testing.launching <- run.config
testing.launching <- run.launcher.output: say
testing.metrics <- totals: add_exactly
testing.metrics <- totals: is_additive
testing.metrics <- totals: record_totals
testing.metrics <- training.step.measuring: merge_totals
testing.metrics <- training.step.model: METRICS
testing.steering <- minimisation: Plain
testing.steering <- training.data.dataset: Rows
testing.steering <- training.trainer: Trainer
"""


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(KERNEL).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MOVED = {  # distributions by now: their modules are named by the last word of their package
    name: ROOT / "plugins" / f"sigma-{name}" / f"sigma_{name}" for name in ("run", "store", "testing", "text")
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


def test_what_is_imported_against_the_order_of_distributions_is_listed():
    assert against_the_order() == {*LEFT.strip().splitlines()} - {""}


def test_every_prefix_of_the_plan_is_a_module():
    assert {prefix for prefix in BELONGS if not any(f"{one}.".startswith(f"{prefix}.") for one in MODULES)} == set()
