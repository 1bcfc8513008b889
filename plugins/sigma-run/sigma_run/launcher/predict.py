"""``sigma predict``: predict with a trained network from files (.csv, .npy, images)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_run.config.trained import Trained, load
from sigma_run.launcher.configured import CHECKPOINT, WEIGHTS, standing
from sigma_run.launcher.continuation import check_options, text_options, write_on
from sigma_run.launcher.output import document, json_option, say, table
from sigma_run.launcher.predicted_text import predict_text, reads_texts
from sigma_run.launcher.predictions import Predictions, collect_predictions, write
from sigma_run.launcher.saved_table import WantedTable, table_options
from sigma_run.predicting.reading import identify_samples, list_files


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("inputs", metavar="[INPUT...]", type=click.Path(path_type=Path), nargs=-1)
@text_options
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to a .csv or .npy file instead.")
@table_options
@click.option("--top", metavar="K", type=click.IntRange(min=1), default=1, help="Print the K most probable classes.")
@click.option("--trainer", metavar="NAME", help="Use this trainer, if the run has several.")
@CHECKPOINT
@WEIGHTS
@click.option("--backend", metavar="NAME", help="Compute on this backend.")
@click.option("--white", metavar="X", type=float, help="The value of a white pixel in the training data.")
@json_option
def predict(
    run: Path,
    inputs: tuple[Path, ...],
    output: Path | None,
    top: int,
    white: float | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Predict with the trained network of the run folder RUN.

    INPUT is a table (.csv) with the columns of the training data (the target is optional), an array (.npy), or an image
    (.png, .jpg) of the network's input size. Several files may be given. For a network that was trained on a folder of
    pictures, INPUT is a picture of any size, or a folder, zip or tar archive of them.

    With --save, the predictions become a table, with the columns that name a row, classes by name and probabilities;
    INPUT may be larger than memory, and have any format of tables.

    With --text, a network that was trained to predict characters or tokens continues a text instead; one that was
    trained on texts with a class predicts from it.
    """
    wanted = WantedTable(how.pop("save"), how.pop("keep"), how.pop("force"))
    others = {"--output": output is not None, "--save": wanted.path is not None}
    continues = check_options(inputs, how, {**others, "--white": white is not None, "--top": top > 1})
    wanted.check(output)
    given = {name: how.pop(name) for name in ("trainer", "backend", "checkpoint", "weights")}
    model = load(run, **given, log=_warn)
    _say_checkpoint(model)
    if continues and not reads_texts(model):
        write_on(run, model, how, as_json)
        return
    if wanted.path is not None:
        wanted.write(model, inputs, white)
        return
    predictions = predict_text(model, how, top) if continues else _predict_files(model, inputs, white, top)
    if output is not None:
        write(output, predictions)
    if as_json or output is None:
        _show(predictions, {"folder": str(run), "checkpoint": str(model.path)} if as_json else None)


def _show(predictions: Predictions, about: dict[str, str] | None) -> None:
    """Print predictions as a document that also says this about them; or else as a table."""
    if about is None:
        table(predictions.table())
    else:
        document({**about, "predictions": predictions.rows()})


def _say_checkpoint(model: Trained) -> None:
    own = model.run.checkpoints(model.trainer.name)
    say(f"{model.trainer.name}: {standing(own, model.path, model.checkpoint.score)}")


def _predict_files(model: Trained, inputs: tuple[Path, ...], white: float | None, top: int) -> Predictions:
    """Return the predictions for the samples of all files."""
    try:
        parts = _samples(model, inputs, white)
    except SigmaDataError as error:
        raise SigmaConfigError(str(error)) from error
    try:
        predicted = model.predict(np.concatenate(parts))
    except SigmaDataError as error:
        raise _error_in_file(model, dict(zip(inputs, parts, strict=True)), error) from error
    places = [place for path, part in zip(inputs, parts, strict=True) for place in _places(model, path, len(part))]
    return collect_predictions(model, predicted, places, top, _identify(model, inputs))


def _identify(model: Trained, inputs: tuple[Path, ...]) -> dict[str, list[Any]]:
    """Return what identifies the samples of all files, by column, for data of which samples are not rows."""
    parts = {path: identify_samples(model, path) for path in inputs}
    names = {name: None for part in parts.values() for name in part}
    if other := next((path for path, part in parts.items() if part.keys() != names.keys()), None):
        raise SigmaConfigError(f"{other}: has other columns than the inputs before. Predict from it alone.")
    return {name: [text for part in parts.values() for text in part[name]] for name in names}


def _samples(model: Trained, inputs: tuple[Path, ...], white: float | None) -> list[np.ndarray]:
    """Return the samples of each file."""
    if len(model.shapes) != 1:
        raise SigmaConfigError(
            f"{model.trainer.name}: the network reads several sections: {', '.join(model.shapes)}. Files hold one: "
            "use sigma_ml.load(RUN).predict({section: array}) in Python."
        )
    return [model.read(path, white) for path in inputs]


def _places(model: Trained, path: Path, count: int) -> list[tuple[str, int]]:
    """Return the file of each sample, and its row there; of a folder or an archive, the files in it."""
    return [(str(file), 0) for file in list_files(model, path)] or [(str(path), row) for row in range(count)]


def _error_in_file(model: Trained, samples: Mapping[Path, np.ndarray], error: SigmaDataError) -> SigmaConfigError:
    """Return the error for samples that do not fit the network, with the name of their file."""
    for path, part in samples.items():
        try:
            model.predict(part)
        except SigmaDataError as its_own:
            return SigmaConfigError(f"{path}: {str(its_own).removeprefix('data: ').removeprefix('predict: ')}")
    return SigmaConfigError(str(error))


def _warn(text: Any) -> None:
    say(f"warning: {text}", "yellow")
