"""The monitor ``control``: other shells of the same user watch and steer the run, through a Unix socket."""

from __future__ import annotations

import os

from attrs import define, field

from sigma_kernel.contracts import Monitor, View
from sigma_kernel.errors import SigmaStateError
from sigma_monitor_control import places
from sigma_monitor_control.server import Server

_TOLD = set[str]()  # reasons already reported by this process for a missing socket


@define(eq=False)
class ControlMonitor(Monitor):
    """Let other shells watch and steer the run, through a socket that ``control.json`` in its folder names.

    Every run has it, unless ``[run] control = false``, ``Environment(control=False)`` or ``SIGMA_CONTROL=off`` is set.
    """

    _server: Server | None = field(default=None, init=False)

    steers = True

    def is_attended(self) -> bool:
        """Return whether a shell or a program is connected."""
        return self._server is not None and self._server.count > 0

    def watch(self, view: View) -> None:
        """Serve until the run is over; raises SigmaStateError if no socket can be created, once per process."""
        try:
            listener, path = places.open_listener()
        except SigmaStateError as error:
            if str(error) not in _TOLD:
                _TOLD.add(str(error))
                raise
            return
        file = None if view.folder is None else places.announce_run(view.folder, path)
        try:
            self._server = Server(view, listener, os.getuid())
            self._server.run()
        finally:
            listener.close()
            places.remove_file(path)
            if file is not None and places.read(file.parent).get("socket") == str(path):
                places.remove_file(file)
