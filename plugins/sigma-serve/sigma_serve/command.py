"""``sigma serve``: serve the predictions of a trained network by HTTP."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from sigma_http.serving import address, is_loopback, listening, serve_until
from sigma_http.tokens import SHORTEST, check_token, read_token
from sigma_kernel.errors import SigmaConfigError
from sigma_run import load
from sigma_run.launcher import CHECKPOINT, WEIGHTS, say, standing
from sigma_serve.application import PredictionApplication
from sigma_serve.batching import Batcher
from sigma_serve.model import ServedNetwork

PATIENCE = 10  # seconds that requests may take to end


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--trainer", metavar="NAME", help="Use this trainer, if the run has several.")
@CHECKPOINT
@WEIGHTS
@click.option("--backend", metavar="NAME", help="Compute on this backend.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Listen on this port; 0 is the first free one.")
@click.option("--name", "names", metavar="HOST", multiple=True, help="Another name of the server, as clients use it.")
@click.option("--token", default="", metavar="TOKEN", help="Ask for this token; $NAME takes it from the environment.")
@click.option("--most-rows", default=10_000, show_default=True, type=click.IntRange(1), help="Rows of a request.")
@click.option("--most-bytes", default=8 << 20, show_default=True, type=click.IntRange(1), help="Bytes of a request.")
def serve(
    run: Path,
    trainer: str | None,
    checkpoint: int | str | None,
    weights: str,
    backend: str | None,
    host: str,
    port: int,
    names: Sequence[str],
    token: str,
    most_rows: int,
    most_bytes: int,
) -> None:
    """Serve the predictions of the trained network of the run folder RUN by HTTP, until Ctrl-C or SIGTERM.

    POST /predict takes rows in JSON or CSV. GET / is a page that documents the server, to try it in a browser.
    """
    key = _read_key(host, token)
    model = load(run, trainer, backend=backend, checkpoint=checkpoint, weights=weights, log=_warn)
    own = model.run.checkpoints(model.trainer.name)
    say(f"{model.trainer.name}: {standing(own, model.path, model.checkpoint.score)}")
    network = ServedNetwork(model, run.resolve().name)
    network.warm_up()
    batcher = Batcher(network.predict)
    application = PredictionApplication(network, batcher, key, most_rows, most_bytes)
    with listening(host, port) as listener, ending() as over:
        batcher.begin()
        say(f"serves {run}: {address(host, listener.getsockname()[1])}")
        guarded = application.guard_application(host, names)
        asyncio.run(
            serve_until(guarded, listener, lambda seconds: over.is_set(), _end, timeout_graceful_shutdown=PATIENCE)
        )
        batcher.end()
    say("closed")


def _read_key(host: str, token: str) -> str:
    """Return the token; raise SigmaConfigError if it is unusable, or other machines could do without."""
    check_token("--token", token)
    if not is_loopback(host) and not token:
        raise SigmaConfigError(
            f"--host: {host!r} can be reached from other machines. Give --token, too, of at least {SHORTEST} "
            "characters; or keep the default, and forward the port with ssh -L."
        )
    return read_token("--token", token)


@contextmanager
def ending() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set."""
    over = threading.Event()

    def end(number: int, frame: Any) -> None:
        over.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield over
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _end() -> None:
    """Do nothing more than to answer the requests that have begun."""


def _warn(text: Any) -> None:
    say(f"warning: {text}", "yellow")
