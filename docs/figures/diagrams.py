"""Draw the diagrams: the parts of Sigma, and the way from a file to a burst.

A test compares the files with what this draws.
"""

from __future__ import annotations

from collections.abc import Callable

from figures.drawing import area, arrow, box, document, text


def parts() -> str:
    """Return the diagram of the parts."""
    description = (
        "Three levels. On top, what people use: the sigma command with a TOML file, Python, and monitors. They create "
        "and steer an environment of trainers. In the middle, the kernel: the registry of addresses, the graph, time "
        "and hooks, and the journal with its checkpoints. Below, plugins, found through entry points: networks, "
        "optimisers, data, hooks and backends."
    )
    used = [
        box((20, 40), (190, 62), "sigma run digits.toml", "a file, the command", colour=1),
        box((225, 40), (190, 62), "trainer.fit()", "Python, a notebook", colour=1),
        box((430, 40), (190, 62), "monitors", "watch and steer", colour=1),
    ]
    kernel = [
        area((20, 148), (600, 192), "the kernel: sigma_kernel"),
        box((40, 180), (560, 46), "environment", "trainers, each with a network, data and an optimiser"),
        box((40, 244), (128, 80), "registry", "an address", "for every value"),
        box((184, 244), (128, 80), "graph", "traced layers,", "gradients"),
        box((328, 244), (128, 80), "clock", "hooks, criteria,", "bursts"),
        box((472, 244), (128, 80), "journal", "commands,", "checkpoints"),
    ]
    names = [
        ("network", "layers", "initialisers"),
        ("optimisers", "schedules", "transforms"),
        ("data", "data sets", "preprocessors"),
        ("hooks", "metrics", "monitors"),
        ("backends", "numpy, numba", "operators"),
    ]
    plugins = [
        area((20, 388), (600, 126), "plugins, found through entry points: yours are like ours"),
        *(box((36 + 115 * i, 420), (108, 80), *words, colour=2) for i, words in enumerate(names)),
    ]
    arrows = [
        *(arrow((x, 102), (x, 146)) for x in (115, 320, 525)),
        text(328, 128, "settings, commands", "quiet"),
        arrow((320, 388), (320, 342)),
        text(328, 370, "components by name", "quiet"),
    ]
    title = "The parts of Sigma"
    drawn = [text(20, 26, title, "", size=16), *used, *kernel, *plugins, *arrows]
    return document(title, description, (640, 534), drawn)


def way() -> str:
    """Return the diagram of the way from a file to a burst."""
    description = (
        "From top to bottom. A TOML file is read and checked, all errors at once. Names become components of plugins. "
        "Layers are traced into one graph. The kernel adds gradients, the optimiser's update and metrics: this is the "
        "step. A backend compiles the step. Then a loop: the clock counts the iterations before the next due hook, the "
        "backend runs that many in one burst, and at its end hooks fire, commands are applied and the journal is "
        "written."
    )
    stages = [
        ("digits.toml, or Python", "names, tables, numbers"),
        ("configuration", "checked: all errors at once"),
        ("components", "names become objects of plugins"),
        ("network", "layers are traced to one graph"),
        ("step", "+ gradients, update, metrics"),
        ("program", "compiled by the backend, once"),
    ]
    drawn = [box((20, 40 + 74 * i), (250, 54), *words, colour=0 if i else 1) for i, words in enumerate(stages)]
    drawn += [arrow((145, 94 + 74 * i), (145, 112 + 74 * i)) for i in range(len(stages) - 1)]
    loop = [
        area((320, 40), (300, 424), "training"),
        box((340, 76), (260, 72), "clock", "n iterations remain before", "a hook is due"),
        box((340, 204), (260, 72), "burst", "n steps in one call: no Python", "live values are inputs", colour=2),
        box(
            (340, 332),
            (260, 108),
            "boundary",
            "due hooks fire",
            "commands are applied",
            "both enter the journal",
            colour=3,
        ),
        arrow((470, 148), (470, 202)),
        arrow((470, 276), (470, 330)),
        arrow((600, 386), (612, 386), (612, 112), (602, 112)),
        arrow((270, 437), (296, 437), (296, 240), (338, 240)),
        text(478, 180, "n", "quiet"),
        text(478, 308, "state, losses", "quiet"),
    ]
    title = "From a file to a burst"
    return document(title, description, (640, 484), [text(20, 26, title, "", size=16), *drawn, *loop])


DIAGRAMS: dict[str, Callable[[], str]] = {"parts.svg": parts, "way.svg": way}
