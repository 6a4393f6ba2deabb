"""Metrics in the format of Prometheus; with several workers, sums over them."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
"""Upper limits in seconds."""
METHODS = frozenset({"DELETE", "GET", "OPTIONS", "POST", "PUT"})
OTHER = "other"
"""The label of an unknown method or path, so that clients cannot create series."""
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder through which workers share their metrics. prometheus_client reads
it when it is imported."""
_REFRESH_SECONDS = 1.0

# Else each counter has a second series with the time when it began.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # untyped there


@dataclass
class Reading:
    """A metric whose values are read from elsewhere."""

    name: str
    documentation: str
    read: Callable[[], Mapping[str, float] | float | None]
    """Returns the values by label, or the one value; None or none if there is nothing to show.
    It does not block."""
    label: str = ""
    """Empty for one value without a label."""
    workers: Literal["livesum", "livemin", "max", "total"] = "livesum"
    """How the values of several workers become one; "total" for values that only grow."""
    _last: dict[str, float] = field(default_factory=dict)
    _metric: Counter | Gauge | None = None

    def refresh(self, registry: CollectorRegistry) -> None:
        """Read the values."""
        reading = self.read()
        if reading is None:
            # A metric without a label would show 0.
            return
        values = reading if isinstance(reading, Mapping) else {"": reading}
        if self._metric is None:
            names = (self.name, self.documentation, [self.label] if self.label else [])
            if self.workers == "total":
                self._metric = Counter(*names, registry=registry)
            else:
                self._metric = Gauge(*names, registry=registry, multiprocess_mode=self.workers)
        for label, value in values.items():
            metric = self._metric.labels(label) if self.label else self._metric
            if isinstance(metric, Gauge):
                metric.set(value)
            else:
                metric.inc(value - self._last.get(label, 0))
                self._last[label] = value


class Metrics:
    """The metrics of one process, which may be one of several workers."""

    def __init__(self, version: str) -> None:
        self._registry = CollectorRegistry()
        durations = partial(Histogram, buckets=BUCKETS, registry=self._registry)
        counter = partial(Counter, registry=self._registry)
        self._requests = durations(
            "rprime_http_request_duration_seconds",
            "Duration of requests; status none: the client disconnected.",
            ["method", "route", "status"],
        )
        # To look for a series costs more than to count in it.
        self._series: dict[tuple[str, str, int], Histogram] = {}
        self.commits = durations(
            "rprime_store_commit_duration_seconds",
            "Duration of the commits of the store, retries included.",
        )
        self.evaluations = counter(
            "rprime_evaluations",
            "Evaluations by kind of evidence and verdict of the gate.",
            ["evidence", "verdict"],
        )
        closed = "Connections that the server closed, by reason."
        self.closed = counter("rprime_connections_closed", closed, ["reason"])
        self.ended = ended_workers(self._registry)
        if SHARED_FOLDER not in os.environ:
            ProcessCollector(registry=self._registry)
        info = {version: 1.0}
        shown = Reading("rprime_info", "Version of the service.", lambda: info, "version")
        self._readings = [shown]

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request and its duration; only in the event loop."""
        key = (method, route, status // 100)
        series = self._series.get(key)
        if series is None:
            group = f"{status // 100}xx" if status else "none"
            series = self._series[key] = self._requests.labels(method, route, group)
        series.observe(seconds)

    def read(self, *readings: Reading) -> None:
        """Read more values at each scrape."""
        self._readings += readings

    async def share(self) -> None:
        """Show the values of this worker to the others, again and again."""
        while SHARED_FOLDER in os.environ:
            self._refresh()
            await asyncio.sleep(_REFRESH_SECONDS)

    def _refresh(self) -> None:
        for reading in self._readings:
            reading.refresh(self._registry)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their media type, in the format that Accept prefers."""
        self._refresh()
        encode, media = choose_encoder(accept)
        registry = self._registry
        if shared := os.environ.get(SHARED_FOLDER):
            registry = CollectorRegistry()
            registry.register(_Processes(Path(shared)))
            registry.register(_Workers(shared))
        return encode(registry), media


def ended_workers(registry: CollectorRegistry) -> Counter:
    """Make the counter of processes that have ended."""
    text = "Processes that ended and were replaced, by kind (server, large_requests) and signal."
    return Counter("rprime_workers_ended", text, ["kind", "reason"], registry=registry)


class _Workers(MultiProcessCollector):
    def __init__(self, shared: str) -> None:
        super().__init__(None, shared)  # type: ignore[no-untyped-call] # untyped there

    def collect(self) -> Iterable[Metric]:
        """Return the sums over the workers."""
        # A worker that is starting has made its files and not filled them yet.
        files = [str(path) for path in Path(self._path).glob("*.db") if path.stat().st_size]
        metrics: Iterable[Metric] = self.merge(files)  # type: ignore[no-untyped-call] # as above
        return metrics


class _Processes(Collector):
    """Memory, time and files of each worker: sums of them would fall when one ends."""

    def __init__(self, shared: Path) -> None:
        self._shared = shared

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for path in sorted(self._shared.glob("gauge_livesum_*.db")):
            worker = path.stem.rpartition("_")[2]
            for metric in ProcessCollector(registry=None, pid=partial(str, worker)).collect():
                family = families.setdefault(metric.name, metric)
                named = [sample._replace(labels={"worker": worker}) for sample in metric.samples]
                family.samples = named if family is metric else family.samples + named
        yield from families.values()
