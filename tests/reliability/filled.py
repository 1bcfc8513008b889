"""Train and save after every epoch while the disk is full for some of them; print the results as JSON.

::

    unshare --map-root-user --mount sh -c 'mount -t tmpfs -o size=256k none DIR && python filled.py tmpfs DIR'
    python filled.py limit DIR

On a ``tmpfs``, files share the available space; with ``limit``, no file may become longer than a few bytes.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store.checkpoints.store import list_checkpoints, read
from sigma_testing.steering import Sweep, small_environment

FULL, EPOCHS = range(3, 6), range(1, 9)  # the epochs at whose end the disk is full, and their total number


def fill(how: str, run: Path) -> None:
    """Fill the disk."""
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return
    with suppress(OSError), (run / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def make_room(how: str, run: Path) -> None:
    """Free the space."""
    if how == "limit":
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    else:
        (run / "filler").unlink()


def main(how: str, parent: Path) -> None:
    """Train and save, then replay the whole run."""
    whole: dict[int, list[str]] = {}
    with small_environment(Sweep()) as sigma:
        sigma.folder = parent
        trainer = sigma.trainer("trainer")
        for epoch in EPOCHS:
            if epoch == FULL.start:
                fill(how, parent)
            if epoch == FULL.stop:
                make_room(how, parent)
            with suppress(SigmaCheckpointError, SigmaStateError):  # it ends, but cannot save or write the summary
                trainer.fit(epochs=1)
            run = sigma.run_folder
            assert run is not None
            whole[epoch] = [path.name for path in list_checkpoints(run, "trainer") if same(read(path), path)]
        alarms = [text for _, text in sigma.messages.entries_after(0)]
        epochs = trainer.session.moment.epoch
    with small_environment(Sweep()) as again:
        _, differs = again.replay(run)
    left = sorted(path.name for path in (run / "checkpoints" / "trainer").iterdir())
    found = {"epochs": epochs, "alarms": alarms, "whole": whole, "left": left, "differs": differs}
    print(json.dumps(found))


def same(found: Any, path: Path) -> bool:
    """Return whether a checkpoint contains the state of its iteration."""
    return bool(found.values["clock"]["iteration"] == int(path.name))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
