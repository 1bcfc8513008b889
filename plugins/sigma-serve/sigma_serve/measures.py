"""Count requests, and expose the counts to Prometheus."""

from __future__ import annotations

from attrs import define, field
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


@define(eq=False)
class Measures:
    """The requests to predict: how many, how they were answered, how long that took, and their rows."""

    _registry: CollectorRegistry = field(factory=lambda: CollectorRegistry(auto_describe=False), init=False)
    _requests: Counter = field(init=False)
    _errors: Counter = field(init=False)
    _seconds: Histogram = field(init=False)
    _rows: Counter = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Register the counters."""
        named, where = ["status"], self._registry
        self._requests = Counter("sigma_serve_requests", "Requests to predict, by HTTP status.", named, registry=where)
        self._errors = Counter("sigma_serve_errors", "Requests that were refused or failed.", registry=where)
        self._seconds = Histogram(
            "sigma_serve_seconds", "Seconds from a request to its answer.", buckets=BUCKETS, registry=where
        )
        self._rows = Counter("sigma_serve_rows", "Rows that were predicted.", registry=where)

    def count(self, status: int, seconds: float, rows: int) -> None:
        """Count an answer."""
        self._requests.labels(str(status)).inc()
        if status >= 400:
            self._errors.inc()
        self._seconds.observe(seconds)
        self._rows.inc(rows)

    def expose(self) -> tuple[bytes, str]:
        """Return the exposition, and its media type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
