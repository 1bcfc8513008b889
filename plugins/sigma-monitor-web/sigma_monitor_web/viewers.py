"""Serve the protocol to the views of a widget, through messages of its model: one conversation a view.

A view that does not acknowledge what it was sent gets no new events meanwhile, and is dropped after half a minute; it
then begins again by itself.  The thread rests as those of the dashboard do, so that training is not slowed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define, field

from sigma_kernel.errors import SigmaError, error_text
from sigma_monitor_control.budget import PROCESS, WorkBudget
from sigma_monitor_control.protocol import LONGEST
from sigma_monitor_web.talk import OFTEN, SOON, STALLED, Talk

MOST = 32  # views of a widget at a time
WAITING = 256  # documents of a view that are not read yet; with more it is dropped
IDLE = 1.0  # seconds between two looks at views that ask for nothing
TEXTS = ("view", "do", "text")  # of a message from a view

Send = Callable[[Mapping[str, Any]], object]


@define(eq=False)
class Viewer:
    """One view: its conversation, its unread documents, and the messages that it has not acknowledged."""

    talk: Talk
    since: float  # when it acknowledged the last of them
    inbox: list[str] = field(factory=list)
    unseen: int = 0

    @property
    def pause(self) -> float:
        """Return the seconds until it is looked at again."""
        return SOON if self.talk.waits else OFTEN if self.talk.is_subscribed else IDLE

    def lines(self, now: float) -> Iterator[str]:
        """Yield the documents for it: answers always, events once it has seen the last ones."""
        inbox, self.inbox = self.inbox, []
        for text in inbox:
            yield from self.talk.receive(text)
        yield from self.talk.answers()
        if not self.unseen:
            yield from self.talk.events(now)


@define(eq=False)
class Viewers:
    """All views of a widget; a thread serves them, and ends with the last one.

    Args:
        begin: Begins a conversation.
        send: Sends a message to all views.
        budget: How long the thread rests.
        clock: A steady clock, in seconds.
    """

    begin: Callable[[], Talk]
    send: Send
    budget: WorkBudget = PROCESS
    clock: Callable[[], float] = time.monotonic
    _views: dict[str, Viewer] = field(factory=dict, init=False)
    _opening: list[str] = field(factory=list, init=False)
    _gate: threading.Lock = field(factory=threading.Lock, init=False)
    _called: threading.Event = field(factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _over: bool = field(default=False, init=False)

    @property
    def count(self) -> int:
        """Return the number of views."""
        return len(self._views)

    def take(self, content: Any) -> None:
        """Take a message of a view, in any thread; one that is none is left."""
        if not isinstance(content, Mapping) or not all(isinstance(content.get(name), str) for name in TEXTS):
            return
        name, do, text = (content[key] for key in TEXTS)
        with self._gate:
            if do == "open" and not self._over and len(self._views) + len(self._opening) < MOST:
                self._opening.append(name)
                self._start()
            elif (view := self._views.get(name)) is not None:
                self._hear(view, do, text)
        self._called.set()

    def _hear(self, view: Viewer, do: str, text: str) -> None:
        if do == "say" and len(text) <= LONGEST:
            view.inbox.append(text)
        elif do == "seen":
            view.unseen, view.since = max(0, view.unseen - 1), self.clock()
        elif do == "close":
            view.since = float("-inf")
            view.unseen = 1

    def end(self) -> None:
        """End all conversations, and the thread, after its present turn."""
        with self._gate:
            self._over = True
        self._called.set()

    # -- the thread ----------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="sigma-widget", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while self._goes_on():
            began = time.thread_time()
            for name in self._take_opening():
                self._open(name)
            for name, view in [*self._views.items()]:
                self._turn(name, view)
            time.sleep(self.budget.spend_thread(began))
            self._called.wait(min((view.pause for view in [*self._views.values()]), default=0.0))
            self._called.clear()

    def _goes_on(self) -> bool:
        """Return whether there is a view; let the thread end else, and the conversations if all is over."""
        with self._gate:
            if not self._over and (self._views or self._opening):
                return True
            for view in self._views.values():
                view.talk.close()
            self._views.clear()
            self._thread = None
            return False

    def _take_opening(self) -> list[str]:
        with self._gate:
            opening, self._opening = self._opening, []
            return opening

    def _open(self, name: str) -> None:
        """Begin the conversation of a view, or tell it why there is none."""
        try:
            talk = self.begin()
        except (SigmaError, OSError) as error:
            self.send({"view": name, "closed": error_text(error)})
            return
        with self._gate:
            self._views[name] = Viewer(talk, self.clock(), unseen=1)
        self.send({"view": name, "opened": True})

    def _turn(self, name: str, view: Viewer) -> None:
        """Send a view what is ready, or drop it: it has left, reads nothing, or its run has ended."""
        now = self.clock()
        if (view.unseen and now - view.since > STALLED) or len(view.inbox) > WAITING:
            self._drop(name, "it did not read")
            return
        try:
            lines = [*view.lines(now)]
        except ConnectionError:
            self._drop(name, "the process of the run has ended")
            return
        if lines:
            with self._gate:
                view.unseen, view.since = view.unseen + 1, view.since if view.unseen else now
            self.send({"view": name, "lines": lines})

    def _drop(self, name: str, why: str) -> None:
        with self._gate:
            view = self._views.pop(name)
        view.talk.close()
        self.send({"view": name, "closed": why})
