"""The backend with the processor in the place of a GPU: the same kernels, plan and bursts."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from sigma_backend_cupy import CupyBackend
from sigma_backend_cupy.devices.host import HostDevice


@frozen
class HostBackend(CupyBackend):
    """Kernels compiled for the processor; ``reverse`` runs the threads of a block in reverse order."""

    reverse: bool = False

    def open_device(self) -> HostDevice:
        return HostDevice(self.reverse)

    @property
    def runtime(self) -> Mapping[str, str]:
        return {}
