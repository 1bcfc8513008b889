"""The server of one run: one thread, one conversation for each connection, bounded in memory, time and number.

Documents go out as fast as a client reads them: unread ones are kept up to a limit, and its events wait.  The thread
sleeps four times as long as a request took, within a budget that all servers of the process share, so that clients that
poll without a pause do not slow training.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from attrs import Factory, define, field

from sigma_kernel.contracts import View
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_monitor_control import places, protocol  # whose conversation is imported with the first client
from sigma_monitor_control.aside import Aside
from sigma_monitor_control.budget import PROCESS, WorkBudget
from sigma_monitor_control.protocol.documents import LONGEST, error_line

PIECE = 1 << 18  # bytes read, or written, at a time
REQUESTS = 100  # of one client that are answered in one turn
UNREAD = 1 << 20  # bytes that a client has not read, from which on its requests wait
HELD = 32 << 20  # bytes of all connections, read and to be written; beyond, the largest one is dropped
STALLED = 30.0  # seconds after which a client that reads nothing of what waits for it is dropped
CONNECTIONS = 100  # concurrent connections; beyond, the one idle longest is dropped
LONGEST_REST = 1.0  # seconds
IDLE, BUSY = 0.05, 0.01  # seconds between two polls: in general, and while requests arrive or wait
LAST = 1.0  # seconds that commands get to be applied at the end of the run
RECENT = 0.2  # seconds for which more requests are expected to follow one


@define(eq=False)
class Connection:
    """A client: its conversation, the beginning of a line that it sent, and the bytes that it has not read."""

    socket: socket.socket
    conversation: protocol.Conversation
    heard: float  # when it last sent anything, in seconds of the server's clock
    read: float  # when it last read anything, or had nothing to read
    inbox: bytearray = field(factory=bytearray)
    outbox: bytearray = field(factory=bytearray)
    closing: bool = False  # once the outbox is written

    @property
    def held_bytes(self) -> int:
        """Return the bytes that it holds."""
        return len(self.inbox) + len(self.outbox)

    @property
    def idle(self) -> bool:
        """Return whether nothing is under way."""
        return not (self.outbox or self.conversation.waits or self.conversation.is_subscribed)

    def is_busy(self, now: float) -> bool:
        """Return whether requests arrive, or wait for an answer."""
        return bool(self.inbox or self.outbox) or self.conversation.waits or now - self.heard < RECENT

    def hear(self, data: bytes, now: float) -> None:
        """Receive its data."""
        self.heard = now
        self.inbox += data

    def work(self, now: float) -> None:
        """Answer some of the requests that have arrived in full, unless too much is unread."""
        self.read = self.read if self.outbox else now
        for _ in range(REQUESTS):
            end = self.inbox.find(b"\n", 0, LONGEST + 1)
            if self.closing or len(self.outbox) >= UNREAD or end < 0:
                break
            line = bytes(self.inbox[:end])
            del self.inbox[: end + 1]
            if line.strip():
                self.say(self.conversation.receive(line))
        if len(self.inbox) > LONGEST and b"\n" not in self.inbox[: LONGEST + 1]:
            self.inbox.clear()
            self.leave(SigmaConfigError(f"document: is longer than {LONGEST:,} bytes. Send less at a time."))

    def say(self, lines: list[str]) -> None:
        """Queue documents."""
        for line in lines:
            self.outbox += line.encode()

    def leave(self, why: Exception) -> None:
        """Say why it is dropped, and close once that is written."""
        self.say([error_line(None, why)])
        self.closing = True

    def forget(self) -> None:
        """Read its remaining data: unread, it would block the closing messages."""
        with suppress(OSError):
            for _ in range(REQUESTS):
                if not self.socket.recv(PIECE):
                    return

    def catch_up(self, now: float) -> None:
        """Queue the answers that are ready and, if it has read all before, the events that are due."""
        self.say(self.conversation.answers())
        if not self.outbox:
            self.say(self.conversation.events(now))

    def write(self, now: float) -> None:
        """Write what it reads at once; raises OSError if it has left."""
        while self.outbox:
            try:
                count = self.socket.send(self.outbox[:PIECE])
            except BlockingIOError:
                return
            del self.outbox[:count]
            self.read = now


@define(eq=False)
class Server:
    """Serve the clients of a listening socket until the run is over."""

    view: View
    listener: socket.socket
    owner: int  # the user who may connect
    clock: Callable[[], float] = time.monotonic
    budget: WorkBudget = field(factory=lambda: PROCESS)
    _selector: selectors.BaseSelector = field(factory=selectors.DefaultSelector, init=False)
    _connections: dict[int, Connection] = field(factory=dict, init=False)
    _aside: Aside = field(default=Factory(lambda self: Aside(self.budget), takes_self=True), init=False)
    rest: float = field(default=0.0, init=False)  # seconds after the last turn

    @property
    def count(self) -> int:
        """Return the number of connections."""
        return len(self._connections)

    @property
    def held_bytes(self) -> int:
        """Return the bytes that all connections hold."""
        return sum(connection.held_bytes for connection in self._connections.values())

    @property
    def pause(self) -> float:
        """Return the seconds until the next look: a rest after work, and little if something is under way."""
        busy = any(connection.is_busy(self.clock()) for connection in self._connections.values())
        return max(BUSY if busy else IDLE, min(self.rest, LONGEST_REST))

    def run(self) -> None:
        """Serve until the run is over."""
        self.open()
        try:
            while not self.view.wait(self.pause):
                self.turn()
            self._end()
        finally:
            self.close()

    def open(self) -> None:
        """Let clients connect."""
        self._selector.register(self.listener, selectors.EVENT_READ)

    def close(self) -> None:
        """Close all connections."""
        for connection in [*self._connections.values()]:
            self._drop(connection)
        self._selector.close()
        self._aside.end()

    def turn(self) -> None:
        """Accept, read, answer and write without waiting."""
        began = time.thread_time()
        for key, _ in self._selector.select(0):
            if key.fileobj is self.listener:
                self._accept()
            else:
                self._hear(key.data)
        for connection in [*self._connections.values()]:
            self._serve(connection)
        self._bound()
        self.rest = self.budget.spend(time.thread_time() - began)

    # -- connections ---------------------------------------------------------------------------------------------------
    def _accept(self) -> None:
        """Accept those who wait, refuse other users, and make room for one more."""
        for _ in range(CONNECTIONS):
            try:
                accepted, _ = self.listener.accept()
            except OSError:  # no pending connection, or no descriptor left
                return
            accepted.setblocking(False)
            now = self.clock()
            connection = Connection(accepted, protocol.Conversation(self.view, later=self._aside.do), now, now)
            if places.user(accepted) not in (self.owner, None):
                connection.leave(SigmaStateError("this run belongs to another user. Log in as that user to steer it."))
            elif len(self._connections) >= CONNECTIONS:
                self._drop(min(self._connections.values(), key=lambda one: (not one.idle, one.heard)))
            self._connections[accepted.fileno()] = connection
            self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _hear(self, connection: Connection) -> None:
        """Read a piece, unless the client has not read its answers."""
        if connection.closing or len(connection.outbox) >= UNREAD or len(connection.inbox) > LONGEST:
            return
        try:
            data = connection.socket.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            connection.hear(data, self.clock())
        else:
            self._drop(connection)

    def _serve(self, connection: Connection) -> None:
        now = self.clock()
        try:
            connection.work(now)
            connection.catch_up(now)
            connection.write(now)
        except OSError:
            self._drop(connection)
            return
        if connection.closing and not connection.outbox:
            connection.forget()
            self._drop(connection)
        elif connection.outbox and now - connection.read > STALLED:
            self._drop(connection)

    def _bound(self) -> None:
        """Drop those who hold most until all hold little enough."""
        while self.held_bytes > HELD:
            self._drop(max(self._connections.values(), key=lambda one: one.held_bytes))

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.socket.fileno(), None) is not None:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            connection.conversation.close()

    def _end(self) -> None:
        """Wait briefly for the commands that ended the run; send the last events to clients that read them at once."""
        end = time.monotonic() + LAST
        while any(peer.conversation.steers for peer in self._connections.values()) and time.monotonic() < end:
            time.sleep(BUSY)
        for connection in self._connections.values():
            connection.say(connection.conversation.last_lines())
            with suppress(OSError):
                connection.write(self.clock())
