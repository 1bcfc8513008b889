"""``sigma data rows``: list the rows of a run that are probably mislabelled, were learned late, or forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from sigma_kernel.contracts import RowHistory
from sigma_run.config.trained import load
from sigma_run.launcher.output import document, json_option, say, table

HEADS = {"row": "ROW", "mean_loss": "MEAN LOSS", "loss": "LAST LOSS", "forgotten": "FORGOTTEN", "learned": "LEARNED"}


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--on", default="training", show_default=True, help="Rows of this split of the data.")
@click.option("--order", type=click.Choice([*RowHistory.ORDERS]), default="mislabelled", show_default=True)
@click.option("--count", metavar="N", type=click.IntRange(min=1), default=20, help="At most so many. [default: 20]")
@click.option("--trainer", metavar="NAME", help="Use this trainer, if the run has several.")
@json_option
def rows(run: Path, on: str, order: str, count: int, trainer: str | None, as_json: bool) -> None:
    """List rows of the run folder RUN by what became of them over the epochs, as its hook row_history has recorded it.

    The orders: rows that are probably mislabelled first, by their mean losses; rows that were forgotten, most often
    first; learned late, the last first; and never learned. LEARNED is the epoch since which a row is predicted right.
    """
    model = load(run, trainer, checkpoint="newest", log=lambda text: say(f"warning: {text}", "yellow"))
    history = model.data.row_history(on)
    places = history.order(order)
    listed = [_describe(history, place) for place in places[:count].tolist()]
    if as_json:
        document({"run": str(run), "on": on, "order": order, "total": len(places), "rows": listed})
        return
    cells = ([f"{x:.4g}" if isinstance(x, float) else str(x or "") for x in row.values()] for row in listed)
    table([[*HEADS.values()], *cells])


def _describe(history: RowHistory, place: int) -> dict[str, Any]:
    """Return a row as a table and a document have it; what is not known is None."""
    seen = history.losses[place][np.isfinite(history.losses[place])]
    mean, learned = float(history.mean[place]), int(history.learned[place])
    values = int(history.rows[place]), mean if np.isfinite(mean) else None, float(seen[-1]) if len(seen) else None
    return dict(zip(HEADS, [*values, int(history.forgotten[place]), None if learned < 0 else learned], strict=True))
