"""A conversation with one client: documents in, documents out, over any transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import Ticket, View
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, suggest_name
from sigma_monitor_control.protocol import documents
from sigma_monitor_control.protocol.arguments import check_arguments
from sigma_monitor_control.protocol.data import DATA
from sigma_monitor_control.protocol.documents import ClientRequest, Id
from sigma_monitor_control.protocol.layers import LAYERS
from sigma_monitor_control.protocol.mapping import ROWS
from sigma_monitor_control.protocol.media import MEDIA
from sigma_monitor_control.protocol.moments import select_moment
from sigma_monitor_control.protocol.reading import READS, Later, Run, describe_answer, ticket
from sigma_monitor_control.protocol.recalls import READS_RECALLS, RECALLS
from sigma_monitor_control.protocol.steering import STEERS
from sigma_monitor_control.protocol.subscriptions import SUBSCRIBES, Subscription

READ, STEER = "read", "steer"
SCOPES = frozenset({READ, STEER})
MOST = 64  # requests of one client that wait for an answer, and subscriptions


def at_once(act: Callable[[], Any]) -> Future[Any]:
    """Run a call in this thread; return its result or exception as a future."""
    future = Future[Any]()
    try:
        future.set_result(act())
    except Exception as error:  # raised by result()
        future.set_exception(error)
    return future


@define(eq=False)
class Conversation:
    """The requests of one client that are not answered yet, and its subscriptions.

    :meth:`receive` takes a document and returns those to send at once; :meth:`answers` and :meth:`events` return what
    is ready by now; :meth:`notify` calls back once something is ready, so that callers need not poll.  No document
    raises, or ends the conversation.

    Args:
        view: What the client sees of the run.
        scopes: What it may do: ``read``, ``steer``.
        later: Runs a call that may block until training reaches a boundary; by default, in the calling thread.
        more: Further requests that read, by name: functions of the view and of their arguments.
        who: The name of the client in the journal; None for clients that are believed what they say.
    """

    view: View
    scopes: frozenset[str] = SCOPES
    later: Run = at_once
    more: Mapping[str, Callable[..., Any]] = field(factory=dict)
    who: str | None = None
    _waiting: dict[Id, Future[Any] | Ticket] = field(factory=dict, init=False)
    _reads: dict[Id, tuple[Future[Any], Callable[[], object]]] = field(factory=dict, init=False)  # and what ends each
    _rows: dict[Id, int] = field(factory=dict, init=False)  # the newest row of the journal before each command
    _newest: int = field(default=0, init=False)  # of these
    _subscriptions: dict[Id, Subscription] = field(factory=dict, init=False)
    _due: dict[Id, float] = field(factory=dict, init=False)  # when subscriptions look again, in seconds
    _ready: Callable[[], None] = field(default=lambda: None, init=False)

    @property
    def waits(self) -> bool:
        """Return whether a request is not answered yet."""
        return bool(self._waiting)

    @property
    def steers(self) -> bool:
        """Return whether a command is queued."""
        return any(isinstance(promise, Ticket) and not _is_done(promise) for promise in self._waiting.values())

    @property
    def is_subscribed(self) -> bool:
        """Return whether there is a subscription."""
        return bool(self._subscriptions)

    def notify(self, ready: Callable[[], None]) -> None:
        """Call a function, in any thread, whenever an answer has become ready."""
        self._ready = ready

    # -- requests ------------------------------------------------------------------------------------------------------
    def receive(self, text: str | bytes) -> list[str]:
        """Take a document; return the documents to send at once: an answer, or none if it is to wait for."""
        id: Id = None
        try:
            document = documents.parse_document(text)
            id = documents.identity(document)
            request = documents.request(document)
            if id in self._waiting or id in self._subscriptions:
                raise SigmaStateError(f"request {id!r}: another request with this id is pending. Number your requests.")
            return self._answer_request(request)
        except Exception as error:  # also a component's; a client must not end what serves others
            return [documents.error_line(id, error)]

    def _answer_request(self, request: ClientRequest) -> list[str]:
        """Perform a request; return its answer, if ready."""
        if request.do == "cancel":
            return [documents.answer_line(request.id, self._cancel(request))]
        do = self._function(request.do)
        if len(self._waiting) + len(self._subscriptions) >= MOST:
            raise SigmaStateError(f"{request.do}: {MOST} requests are pending. Wait, or cancel some.")
        sender = {} if self.who is None or request.do not in STEERS else {"who": self.who}
        view, arguments = select_moment(self.view, request.do, request.arguments)
        before = self._find_newest_row() if request.do in STEERS else 0
        answer = do(view, **check_arguments(request.do, do, {**arguments, **sender}))
        if request.do in SUBSCRIBES:
            self._subscriptions[request.id], self._due[request.id] = answer, float("-inf")
            return []
        if isinstance(answer, Later):
            self._reads[request.id] = (answer.run or self.later)(answer.act), answer.stop
            answer = self._reads[request.id][0]
        if isinstance(answer, Ticket):
            self._rows[request.id] = before
            return self._acknowledge_command(request.id, answer)
        if isinstance(answer, Future):
            self._wait(request.id, answer, answer)
            return self.answers()
        return [documents.answer_line(request.id, self._add_scopes(answer) if request.do == "hello" else answer)]

    def _acknowledge_command(self, id: Id, found: Ticket) -> list[str]:
        """Wait for a command; report that it is queued, unless it is done by now."""
        self._wait(id, found, found.answer)
        return self.answers() or [documents.event_line(id, {"ticket": ticket(found)})]

    def _find_newest_row(self) -> int:
        """Return the number of the newest row of the journal, whose rows are read once."""
        rows = self.view.journal(self._newest)
        self._newest = rows[-1][0] if rows else self._newest
        return self._newest

    def _wait(self, id: Id, found: Future[Any] | Ticket, done: Future[Any]) -> None:
        self._waiting[id] = found
        done.add_done_callback(lambda _: self._ready())

    def _function(self, do: str) -> Callable[..., Any]:
        """Return what answers; raise a SigmaError if nothing does, or if this client may not ask it."""
        reads = {**READS, **DATA, **ROWS, **LAYERS, **MEDIA, **READS_RECALLS}
        functions = {**self.more, **SUBSCRIBES, **reads, **STEERS, **RECALLS}
        if do not in functions:
            raise SigmaConfigError(
                f"do {do!r:.100}: unknown.{suggest_name(do, functions)} Known are {', '.join(sorted(functions))}."
            )
        scope = STEER if do in STEERS or do in RECALLS else READ
        if scope not in self.scopes:
            raise SigmaStateError(f"{do}: not allowed here, as this connection may only {' and '.join(self.scopes)}.")
        return functions[do]

    def _add_scopes(self, hello: Mapping[str, Any]) -> dict[str, Any]:
        return {**hello, "scopes": sorted(self.scopes)}

    def _cancel(self, request: ClientRequest) -> bool:
        """End a subscription, or drop a request; return whether there was one. Sent commands remain."""
        of = documents.identity({"id": request.arguments.get("of")})
        self._due.pop(of, None)
        self._rows.pop(of, None)
        return self._subscriptions.pop(of, None) is not None or self._drop(of)

    def _drop(self, id: Id) -> bool:
        """Drop a request that waits; return whether there was one.

        What it reads is not computed; if that has begun, it is stopped where it can be.
        """
        there = self._waiting.pop(id, None) is not None
        future, stop = self._reads.pop(id, (None, None))
        if future is not None and stop is not None and not future.cancel() and not future.done():
            stop()
        return there

    # -- later answers -------------------------------------------------------------------------------------------------
    def answers(self) -> list[str]:
        """Return the answers that have become ready."""
        ready = {id: promise for id, promise in self._waiting.items() if _is_done(promise)}
        for id in ready:
            self._drop(id)
        if any(isinstance(promise, Ticket) for promise in ready.values()):
            self._due = dict.fromkeys(self._due, float("-inf"))  # the changes of a command are sent at once
        return [_answer(id, promise, self.view, self._rows.pop(id, 0)) for id, promise in ready.items()]

    def events(self, now: float) -> list[str]:
        """Return the events of subscriptions that are due; ``now`` are the seconds of any steady clock.

        Skip it while the client has not read the last ones: the next event then includes the changes.
        """
        return [*self._events(now)]

    def _events(self, now: float) -> Iterator[str]:
        for id in [id for id, due in self._due.items() if due <= now]:
            subscription = self._subscriptions[id]
            self._due[id] = now + subscription.every
            try:
                event = subscription.event(now)
            except Exception as error:
                self._cancel(ClientRequest(None, "cancel", {"of": id}))
                yield documents.error_line(id, error)
            else:
                if event is not None:
                    yield documents.event_line(id, event)

    def last_lines(self) -> list[str]:
        """Return the closing messages: the last events, and an answer to each request."""
        events = self.events(float("inf"))
        over = SigmaStateError("the run has ended.")
        unanswered = [*self._waiting]
        lines = [*self.answers(), *events]
        return [*lines, *(documents.error_line(id, over) for id in unanswered if id in self._waiting)]

    def close(self) -> None:
        """Drop pending requests: the client has left."""
        for id in [*self._waiting]:
            self._drop(id)
        self._subscriptions.clear()
        self._due.clear()


def _is_done(one: Future[Any] | Ticket) -> bool:
    return one.done() if isinstance(one, Future) else one.state != "queued"


def _answer(id: Id, one: Future[Any] | Ticket, view: View, after: int) -> str:
    """Return the line of an answer that is ready; the row of a command comes after a number."""
    if isinstance(one, Ticket):
        return documents.answer_line(id, describe_answer(view, one, after))
    try:
        return documents.answer_line(id, one.result())
    except Exception as error:
        return documents.error_line(id, error)
