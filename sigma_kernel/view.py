"""What monitors see of an environment."""

from __future__ import annotations

import threading
from typing import Any

from attrs import frozen


@frozen
class EnvironmentView:
    """What a monitor sees and may do, from its own thread."""

    environment: Any  # an Environment
    over: threading.Event

    def get(self, address: str) -> Any:
        """Return a value."""
        return self.environment.get(address)

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return all values that match."""
        return list(self.environment.registry.find(pattern))

    def status(self) -> str:
        """Return the state of the lifecycle, or ``compiling``."""
        trainers = self.environment.trainers.values()
        busy = any(trainer.session.setup.programs.compiling for trainer in trainers)
        return "compiling" if busy else self.environment.state

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return the messages after a number."""
        return list(self.environment.messages.after(after))

    def send(self, command: str, **arguments: Any) -> None:
        """Send a command."""
        self.environment.send(command, **arguments)

    def wait(self, seconds: float) -> bool:
        """Sleep; return whether the run is over."""
        return self.over.wait(seconds)
