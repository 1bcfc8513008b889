"""Train on real data by ``sigma init DATA --run``, without an edit, and write the table of first-look.md.

``tox -e first-looks``, or ``python -m figures.first_looks [NAME...]`` in the folder ``docs``, takes a minute. The data
are those that come with Sigma, scikit-learn, statsmodels, vega_datasets and FoxDot; each is written as a user would
have it.
The exit code is 1 if a network is no better than its best baseline without inputs.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import frozen

from figures import FOLDER

PAGE = FOLDER.parent / "how-to" / "first-look.md"
BEGIN, END = "<!-- first looks: begin -->\n", "<!-- first looks: end -->\n"
HEAD = ("data", "from", "rows", "measure", "Sigma", "without inputs", "linear model")
MEASURES = ("accuracy", "mean_absolute_error", "r_squared")
LOWER = ("mean_absolute_error",)
WITHOUT = ("majority", "mean", "constant", "last value")  # baselines that look at no inputs, or at the last one


@frozen
class FirstLook:
    """Data as a user has them: how they are written to a folder, and the options of ``sigma init``."""

    what: str
    source: str
    write: Callable[[Path], str]
    options: tuple[str, ...] = ()


def write_frame(name: str, load: Callable[[], Any]) -> Callable[[Path], str]:
    """Return a function that writes a data frame as ``NAME.csv``."""

    def write(folder: Path) -> str:
        load().to_csv(folder / f"{name}.csv", index=False)
        return f"{name}.csv"

    return write


def load_sklearn(name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module("sklearn.datasets"), f"load_{name}")(as_frame=True).frame


def load_vega(name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module("vega_datasets").local_data, name)()


def load_statsmodels(name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module("statsmodels.datasets"), name).load_pandas().data.reset_index()


def write_sunspots(folder: Path) -> str:
    packed = (files("sigma_data") / "files" / "sunspots.csv.gz").read_bytes()
    (folder / "sunspots.csv").write_bytes(gzip.decompress(packed))
    return "sunspots.csv"


def write_textures(folder: Path) -> str:
    import_module("sigma_data").Textures.write(folder / "textures")
    return "textures/"


def write_speeches(folder: Path) -> str:
    """Write each speech as a file in the folder of its play."""
    speeches = import_module("sigma_text").Speeches().read()
    for number, (text, play) in enumerate(zip(speeches.texts, speeches.classes, strict=True)):
        path = folder / "speeches" / play / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return "speeches/"


DRUMS = {  # folders of the samples of FoxDot, by what its module Buffers calls them
    "kick or tom": ("v/lower", "v/upper", "x/lower", "x/upper", "a/upper", "m/lower", "m/upper"),
    "snare": ("d/upper", "i/lower", "i/upper", "o/lower", "o/upper", "u/lower"),
    "hi-hat or cymbal": ("_/hyphen", "_/equals", "_/tilde", "_/hash", "_/colon", "a/lower"),
    "clap or snap": ("h/lower", "h/upper", "_/asterix"),
}


def write_drums(folder: Path) -> str:
    """Copy samples of drums to a folder for each kind, without an import of the package, which opens connections."""
    root = Path(str(distribution("FoxDot").locate_file("FoxDot/snd")))
    for kind, names in DRUMS.items():
        for name in names:
            for path in sorted((root / name).glob("*.wav")):
                (folder / "drums" / kind).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, folder / "drums" / kind / f"{name.replace('/', '-')} {path.name}")
    return "drums/"


TARGET = ("--target", "target")
LOOKS = {
    "iris": FirstLook("flowers, four lengths", "scikit-learn", write_frame("iris", load_sklearn("iris")), TARGET),
    "wine": FirstLook("wines, 13 measurements", "scikit-learn", write_frame("wine", load_sklearn("wine")), TARGET),
    "wdbc": FirstLook(
        "tumours, 30 features", "scikit-learn", write_frame("wdbc", load_sklearn("breast_cancer")), TARGET
    ),
    "digits": FirstLook(
        "digits of 8 x 8 pixels as a table", "scikit-learn", write_frame("digits", load_sklearn("digits")), TARGET
    ),
    "diabetes": FirstLook(
        "patients, a number to predict", "scikit-learn", write_frame("diabetes", load_sklearn("diabetes")), TARGET
    ),
    "cars": FirstLook(
        "cars: words, dates, gaps",
        "vega_datasets",
        write_frame("cars", load_vega("cars")),
        ("--target", "Miles_per_Gallon"),
    ),
    "weather": FirstLook(
        "days in Seattle, a date and numbers",
        "vega_datasets",
        write_frame("weather", load_vega("seattle_weather")),
        ("--target", "weather"),
    ),
    "barley": FirstLook(
        "yields of barley: two columns of words",
        "vega_datasets",
        write_frame("barley", load_vega("barley")),
        ("--target", "yield"),
    ),
    "fair": FirstLook(
        "a survey, eight answers", "statsmodels", write_frame("fair", load_statsmodels("fair")), ("--target", "affairs")
    ),
    "co2": FirstLook(
        "CO2 of each week, with gaps; 12 weeks ahead",
        "statsmodels",
        write_frame("co2", load_statsmodels("co2")),
        ("--time", "index", "--target", "co2", "--ahead", "12"),
    ),
    "sunspots": FirstLook(
        "sunspots of each month; 12 months ahead",
        "Sigma",
        write_sunspots,
        ("--time", "month", "--target", "sunspots", "--ahead", "12"),
    ),
    "textures": FirstLook("photographs of brick, grass and gravel", "Sigma", write_textures),
    "speeches": FirstLook("speeches of three plays, a folder each", "Sigma", write_speeches),
    "drums": FirstLook("recorded drums of four kinds", "FoxDot", write_drums),
}


def train(look: FirstLook) -> list[str]:
    """Return the row of the table for data, after training on them in a folder of its own."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        path = look.write(folder)
        run_sigma(folder, "init", path, *look.options, "--run")
        (summary,) = (json.loads(file.read_text("utf-8")) for file in folder.glob("runs/*/summary.json"))
        (draft,) = folder.glob("*.toml")
        return describe(look, summary, draft.read_text("utf-8"))


def run_sigma(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "sigma_ml", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def describe(look: FirstLook, summary: Mapping[str, Any], draft: str) -> list[str]:
    """Return the cells of the row: the measure of the draft on the validation rows, and that of baselines."""
    measure = next(name for name in MEASURES if f"validation.{name}" in summary["metrics"])
    address = f"validation.{measure}"
    others = {name: values[address] for name, values in summary.get("baselines", {}).items() if address in values}
    head = draft.partition("\n")[0]
    rows = next(word for word in head.split(": ", 1)[1].split() if word[0].isdigit())
    if last := next((line for line in draft.splitlines() if line.startswith("# last value")), ""):
        others = {"last value": float(last.split()[-1])}
    without = next((others[name] for name in WITHOUT if name in others), None)
    said = [None if value is None else format(value, ".3g") for value in (without, others.get("linear"))]
    cells = [look.what, look.source, rows, measure.replace("_", " "), format(summary["metrics"][address], ".3g")]
    return [*cells, *(text or "" for text in said)]


def beats(row: list[str]) -> bool:
    """Return whether the network is better than the baseline without inputs."""
    ours, without = float(row[4]), float(row[5])
    return ours < without if row[3].replace(" ", "_") in LOWER else ours > without


def main(names: list[str]) -> int:
    """Train on the named data, by default on all, and write the table if all are in it."""
    rows = [train(LOOKS[name]) for name in names or LOOKS]
    table = "".join(f"| {' | '.join(row)} |\n" for row in (HEAD, ["---"] * len(HEAD), *rows))
    print(table)
    if not names:
        text = PAGE.read_text("utf-8")
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return 0 if all(map(beats, rows)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
