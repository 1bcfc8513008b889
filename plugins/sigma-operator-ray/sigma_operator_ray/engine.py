"""All calls of Ray, so that a new version of it changes this file alone. Ray is imported by the first call."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.errors import SigmaConfigError, error_text

Handle = Any  # of an actor
Reference = Any  # to an object, or to the result of a call
PENDING = object()
REACHED_WITHIN = 3.0  # seconds
CPUS = 4096  # of an instance that is started: workers share its processors anyway
GROUPS = {
    "take": "orders",
    "poll": "events",
    "receive": "vectors",
    "connect": "vectors",
    "give_state": "states",
}  # threads of an actor
SIGNALS = (signal.SIGINT, signal.SIGTERM)
VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}  # of an instance


def import_ray() -> Any:
    """Return the library; raise SigmaConfigError without it."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise SigmaConfigError(
            f"operator 'ray': Ray cannot be imported ({error}). Install it: python -m pip install 'ray>=2.60,<3'."
        ) from error


# -- the connection ----------------------------------------------------------------------------------------------------
@define(eq=False)
class RayConnection:
    """The connection of this process to Ray: its trainers share it, and the last one ends what the first has begun.

    A connection that the user's code has opened is used, and left open.
    """

    _users: int = field(default=0, init=False)
    _is_ours: bool = field(default=False, init=False)
    _folder: TemporaryDirectory[str] | None = field(default=None, init=False)  # of the instance that was started
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def open(self, address: str, niceness: int) -> None:
        """Connect to a cluster, or start an instance for the address ""; raise SigmaConfigError if that fails."""
        ray = import_ray()
        with self._lock:
            if self._users == 0 and not ray.is_initialized():
                self._is_ours = True
                _print_messages(False)
                try:
                    with _keep_signal_handlers():
                        _join_cluster(ray, address) if address else self._start_instance(ray, niceness)
                except SigmaConfigError:
                    self._end()
                    raise
            self._users += 1

    def close(self) -> None:
        """End the connection, and the instance that was started, if nobody else uses it."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._is_ours:
                self._end()

    def _end(self) -> None:
        self._is_ours = False
        import_ray().shutdown()
        _print_messages(True)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _start_instance(self, ray: Any, niceness: int) -> None:
        short = "/tmp" if os.path.isdir("/tmp") else None  # sockets have short paths
        self._folder = TemporaryDirectory(prefix="sigma-ray-", dir=short, ignore_cleanup_errors=True)
        with _connection_errors("no instance of Ray can be started", "Read the message of Ray."), _set_variables():
            ray.init(
                address="local",
                num_cpus=CPUS,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                _temp_dir=self._folder.name,
                _system_config={"worker_niceness": niceness},
            )


def _join_cluster(ray: Any, address: str) -> None:
    remedy = "Start Ray by `ray start --head`, or set address to that of a cluster, or to '' for a new instance."
    with _connection_errors(f"address = {address!r}", remedy):
        _expect_server(import_module("ray._private.services").canonicalize_bootstrap_address(address) or "")
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")


def _expect_server(address: str) -> None:
    """Raise OSError if nobody listens at an address, which Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), REACHED_WITHIN).close()


@contextmanager
def _connection_errors(place: str, remedy: str) -> Iterator[None]:
    """Raise SigmaConfigError in place of what Ray raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise SigmaConfigError(f"operator 'ray': {place}: {error_text(error)} {remedy}") from error


@contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Restore the handlers of signals, which Ray replaces if it is started by the main thread."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextmanager
def _set_variables() -> Iterator[None]:
    """Set variables of an instance for its start, unless the user has."""
    added = {name: value for name, value in VARIABLES.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _print_messages(is_on: bool) -> None:
    """Choose whether Ray prints what it has to say about workers to standard output, in spite of ``log_to_driver``.

    Their deaths are reported by the trainer, as events.
    """
    worker: Any = import_module("ray._private.worker")
    worker._worker_logs_enabled = is_on


CONNECTION = RayConnection()


def expect_processors(cpus: float, gpus: float, workers: int) -> None:
    """Raise SigmaConfigError if the cluster has no room for so many workers."""
    total = import_ray().cluster_resources()
    for kind, each in (("CPU", cpus), ("GPU", gpus)):
        if each * workers > (here := total.get(kind, 0.0)):
            raise SigmaConfigError(
                f"operator 'ray': at least {workers} workers need {each * workers:g} {kind}s, and the cluster has"
                f" {here:g}. Lower at_least or {kind.lower()}s, or add nodes."
            )


# -- actors ------------------------------------------------------------------------------------------------------------
@frozen
class ActorOptions:
    """What each actor reserves, and the packages that are installed for it."""

    cpus: float
    gpus: float
    packages: Sequence[str]
    namespace: str
    place: Any = None  # a scheduling strategy of Ray


def start_actor(kind: type, options: ActorOptions, number: int, *values: Any) -> Handle:
    """Return the actor of a worker, which Ray starts where there is room."""
    ray = import_ray()
    for name, group in GROUPS.items():
        ray.method(concurrency_group=group)(getattr(kind, name))
    remote = ray.remote(concurrency_groups=dict.fromkeys(GROUPS.values(), 1))(kind)
    return remote.options(
        name=f"worker {number}",
        namespace=options.namespace,
        num_cpus=options.cpus,
        num_gpus=options.gpus,
        max_restarts=0,
        max_task_retries=0,
        scheduling_strategy=options.place,
        runtime_env={"pip": [*options.packages]} if options.packages else None,
    ).remote(number, *values)


def call(actor: Handle, method: str, *values: Any) -> Reference:
    """Call a method of an actor, without waiting; return a reference to the result."""
    return getattr(actor, method).remote(*values)


def on_result(reference: Reference, use: Callable[[Future[Any]], None]) -> None:
    """Let a function be called with the result, by another thread, once it is there."""
    reference.future().add_done_callback(use)


def end_actor(actor: Handle) -> None:
    """End an actor at once; Ray ends its process later if that is suspended."""
    import_ray().kill(actor, no_restart=True)


def put(value: Any) -> Reference:
    """Return a reference to an object in the object store."""
    return import_ray().put(value)


def wait_for(reference: Reference, seconds: float) -> Any:
    """Return an object, ``PENDING`` if it is not there after some seconds, or None if it is lost."""
    ray = import_ray()
    ready, _ = ray.wait([reference], timeout=max(seconds, 0.0))
    if not ready:
        return PENDING
    try:
        return ray.get(ready[0])
    except ray.exceptions.RayError:
        return None


# -- places ------------------------------------------------------------------------------------------------------------
def reserve(options: ActorOptions, count: int, strategy: str) -> Handle:
    """Return a placement group with room for so many actors, once the cluster has it; None if they reserve nothing."""
    each = {kind: amount for kind, amount in (("CPU", options.cpus), ("GPU", options.gpus)) if amount}
    if not each:
        return None
    return import_module("ray.util").placement_group([each] * count, strategy=strategy.upper())


def is_reserved(group: Handle) -> bool:
    """Return whether a placement group has its room.

    Its own ``wait`` says no while it has, for a moment after the creation and with a short time.
    """
    return bool(import_module("ray.util").placement_group_table(group)["state"] == "CREATED")


def place_actor(group: Handle, bundle: int, strategy: str) -> Any:
    """Return where Ray is to start an actor: in a bundle of a group, or where there is room, if that is None."""
    if group is None:
        return "SPREAD" if strategy == "spread" else "DEFAULT"
    module = import_module("ray.util.scheduling_strategies")
    return module.PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)


def release(group: Handle) -> None:
    """Give the room of a placement group back; what runs there ends."""
    import_module("ray.util").remove_placement_group(group)


# -- channels ----------------------------------------------------------------------------------------------------------
@define(eq=False)
class PacketChannel:
    """Memory for one value, which an actor writes and another one of the same node reads.

    The writer sends it to the reader. Ray frees the memory when the process of the writer ends.
    """

    capacity: int  # bytes
    _channel: Any

    def write(self, data: Any) -> bool:
        """Write what :func:`serialise` has returned; return False if the value before has not been read."""
        try:
            self._channel.write(data, 0.0)
        except import_ray().exceptions.RayChannelTimeoutError:
            return False
        return True

    def read(self) -> Any:
        """Return a value, or ``PENDING`` if there is none. Its arrays occupy the channel until they are forgotten."""
        try:
            return self._channel.read(0.0)
        except import_ray().exceptions.RayChannelTimeoutError:
            return PENDING


def open_channel(reader: Handle, node: str, capacity: int) -> PacketChannel:
    """Return a channel from this actor to another one of the node; raise what Ray raises."""
    module = import_module("ray.experimental.channel.shared_memory_channel")
    own = import_ray().get_runtime_context().current_actor
    return PacketChannel(capacity, module.Channel(own, [(reader, node)], capacity))


def get_node() -> str:
    """Return the node of this process."""
    return str(import_ray().get_runtime_context().get_node_id())


def serialise(value: Any) -> tuple[Any, int]:
    """Return a value as a channel takes it, without a copy of its arrays, and its size in bytes."""
    data = import_ray()._private.worker.global_worker.get_serialization_context().serialize(value)
    return data, data.total_bytes + len(data.metadata)


def is_actor_gone(error: BaseException) -> bool:
    """Return whether the other end of a call has ended, or cannot be reached."""
    errors = import_ray().exceptions
    return isinstance(error, errors.ActorDiedError | errors.ActorUnavailableError)


def get_result(reference: Reference) -> Any:
    """Wait for an object; raise what the call has raised, or Ray."""
    return import_ray().get(reference)


def find_cut(calls: Mapping[int, Reference]) -> list[int]:
    """Return the numbers of those whose calls have failed, though their actors are alive."""
    ray, cut = import_ray(), list[int]()
    ready, _ = ray.wait([*calls.values()], num_returns=len(calls), timeout=0) if calls else ([], [])
    for number, reference in calls.items():
        if reference in ready:
            try:
                ray.get(reference)
            except ray.exceptions.ActorDiedError:
                continue  # the operator knows
            except ray.exceptions.RayError:
                cut.append(number)
    return cut


def describe_failure(error: BaseException) -> tuple[str, bool]:
    """Return what has ended an actor, in words, and whether no other one would do better."""
    errors = import_ray().exceptions
    if isinstance(error, errors.RuntimeEnvSetupError):
        return f"its environment could not be made: {_shorten(str(error))}", True
    if isinstance(error, errors.ActorDiedError) and "creation task" in str(error):
        return f"{error}\nInstall sigma-operator-ray, and the plugins of the run, on all nodes.", True
    if isinstance(error, errors.ActorDiedError | errors.ActorUnavailableError):
        return _describe_death(str(error)), False
    return error_text(error), False


def _describe_death(text: str) -> str:
    """Return the reason of a death, from the message of Ray."""
    for words, reason in DEATHS.items():
        if words in text:
            return reason
    return _shorten(text.rpartition("The actor is dead because ")[2])


DEATHS = {
    "killed by `ray.kill`": "it was ended by ray.kill",
    "connection error code 2. End of file": "its process has ended without a word, as by SIGKILL",
    "connection closed unexpectedly": "its process has ended without a word, as by SIGKILL",
    "node has died": "its node has ended",
    "out of memory": "its node was out of memory",
}


def _shorten(text: str) -> str:
    return " ".join(text.split())[:300]
