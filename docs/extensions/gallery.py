"""The gallery: each recipe with its curves and results, from what ``figures/gallery.py`` has measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sigma_kernel import catalogue

RESULTS = Path(__file__).parents[1] / "figures" / "gallery.json"


def text(_: str = "") -> str:
    """Return the machine, a table of the results, and a section for each recipe, as MyST."""
    found = json.loads(RESULTS.read_text("utf-8"))
    machine, recipes = found["machine"], found["recipes"]
    summaries = {one.name: one.summary for one in catalogue().components("recipe")}
    where = (
        f"Measured on {machine['cores']} cores of a shared virtual machine ({machine['processor']}), with Python "
        f"{machine['python']}, NumPy {machine['numpy']} and Numba {machine['numba']}, at a load of {machine['load']}."
    )
    rows = [f"| [{name}](#{name}) | {' | '.join(_row(one))} |" for name, one in recipes.items()]
    head = "| recipe | epochs | iterations | result | training | whole command |\n|---|---|---|---|---|---|"
    sections = [_section(name, summaries[name], one) for name, one in recipes.items()]
    return "\n\n".join([where, "\n".join([head, *rows]), *sections])


def _row(one: Mapping[str, Any]) -> list[str]:
    seconds = [f"{one[key]:.2g} s" for key in ("seconds", "process_seconds")]
    return [f"{one['epochs']:,}", f"{one['iterations']:,}", result(one["metrics"]), *seconds]


def result(metrics: Mapping[str, float]) -> str:
    """Return the accuracy on validation, the distance of generated samples from real ones, or else the last loss."""
    if "validation.accuracy" in metrics:
        return f"accuracy {metrics['validation.accuracy']:.3f}"
    distance = next((value for key, value in metrics.items() if key.endswith("discrepancy")), None)
    return f"loss {metrics['training.loss']:.3g}" if distance is None else f"discrepancy {distance:.2g}"


def _section(name: str, summary: str, one: Mapping[str, Any]) -> str:
    numbers = ", ".join(f"`{key}` {value:.4g}" for key, value in one["metrics"].items())
    alternative = f"Curves of the recipe {name} over {one['epochs']} epochs: {numbers.replace('`', '')}."
    return f"""## {name}

{summary}

    {one["command"]}

```{{figure}} figures/gallery/{name}.svg
:alt: {alternative}
:figclass: chart
```

After {one["epochs"]} epochs: {numbers}.{_restored(one)}"""


def _restored(one: Mapping[str, Any]) -> str:
    """Return a sentence on curves that end elsewhere than the run."""
    return " These are the best ones, restored; the curves end with the last." if is_restored(one) else ""


def is_restored(one: Mapping[str, Any]) -> bool:
    """Return whether scores of a recipe's run are others than those at the ends of their curves."""
    ends = {key: value for key, value in one["metrics"].items() if not key.startswith("training.")}  # those are means
    return not ends.items() <= one["curves"].items()
