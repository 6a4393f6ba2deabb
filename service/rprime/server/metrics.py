"""Metrics of the process in the format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import parent_process
from os import getpid
from threading import Lock

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
"""Upper limits in seconds."""
METHODS = frozenset({"DELETE", "GET", "OPTIONS", "POST", "PUT"})
OTHER = "other"
"""The label of an unknown method or path, so that clients cannot create series."""
_BOUNDS = (*map(str, BUCKETS), "+Inf")


@dataclass(slots=True)
class _Durations:
    """Histogram of the durations of one series."""

    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * len(_BOUNDS))

    def cumulated(self) -> list[tuple[str, float]]:
        return [(bound, sum(self.buckets[: i + 1])) for i, bound in enumerate(_BOUNDS)]


@dataclass(frozen=True)
class Gauge:
    """A value that is read at each scrape.

    Parameters
    ----------
    name, documentation
        The name and the help text of the metric.
    label
        The name of the label; empty for one value without a label.
    read
        Returns the values by label. It does not block.
    """

    name: str
    documentation: str
    label: str
    read: Callable[[], Mapping[str, float]]

    def family(self) -> Metric:
        """Read the values."""
        names = [self.label] if self.label else []
        family = GaugeMetricFamily(self.name, self.documentation, labels=names)
        for label, value in self.read().items():
            family.add_metric([label] if self.label else [], value)
        return family


class Count(Gauge):
    """A value that only grows, counted elsewhere."""

    def family(self) -> CounterMetricFamily:
        """Read the values."""
        family = CounterMetricFamily(self.name, self.documentation, labels=[self.label])
        for label, value in self.read().items():
            family.add_metric([label], value)
        return family


class Metrics(Collector):
    """The metrics of one process.

    Requests are counted in plain numbers: an observation of prometheus_client costs several times
    as much.

    Parameters
    ----------
    version
        The version of the service.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        self._requests: dict[tuple[str, str, int], _Durations] = {}
        self._evaluations: Counter[tuple[str, str]] = Counter()
        self._closed: Counter[str] = Counter()
        self._workers_ended: Counter[str] = Counter()
        self._gauges: list[Gauge] = []
        self._process = ProcessCollector(registry=None)
        self._lock = Lock()
        # Each of several workers has its own metrics, labeled with its process id.
        self._worker = {} if parent_process() is None else {"worker": str(getpid())}

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request and its duration; only in the event loop."""
        key = (method, route, status // 100)
        durations = self._requests.get(key)
        if durations is None:
            durations = self._requests[key] = _Durations()
        durations.seconds += seconds
        durations.buckets[bisect_left(BUCKETS, seconds)] += 1

    def count_evaluation(self, evidence: str, verdict: str | None) -> None:
        """Count an evaluation by its kind of evidence and its verdict; in any thread."""
        with self._lock:
            self._evaluations[evidence, verdict or "none"] += 1

    def count_closed_connection(self, reason: str) -> None:
        """Count a connection that the server closed; only in the event loop."""
        self._closed[reason] += 1

    def worker_ended(self, reason: str) -> None:
        """Count a worker process that ended instead of answering; in the event loop only."""
        self._workers_ended[reason] += 1

    def add_gauges(self, *gauges: Gauge) -> None:
        """Add gauges to each scrape."""
        self._gauges += gauges

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their media type, in the format that Accept prefers."""
        registry = CollectorRegistry()
        registry.register(self)
        encode, media = choose_encoder(accept)
        return encode(registry), media

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        for family in self._families():
            if self._worker:
                family.samples = [
                    sample._replace(labels={**sample.labels, **self._worker})
                    for sample in family.samples
                ]
            yield family

    def _families(self) -> Iterator[Metric]:
        yield InfoMetricFamily("rprime", "Version of the service.", {"version": self._version})
        yield self._request_seconds()
        yield self._counted_evaluations()
        yield self._counted_closures()
        yield self._counted_ends_of_workers()
        yield from (gauge.family() for gauge in self._gauges)
        yield from self._process.collect()

    def _request_seconds(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "rprime_http_request_duration_seconds",
            "Duration of requests; status none: the client disconnected.",
            labels=["method", "route", "status"],
        )
        for (method, route, status), durations in self._requests.items():
            family.add_metric(
                [method, route, f"{status}xx" if status else "none"],
                durations.cumulated(),
                durations.seconds,
            )
        return family

    def _counted_evaluations(self) -> CounterMetricFamily:
        family = CounterMetricFamily(
            "rprime_evaluations",
            "Evaluations by kind of evidence and verdict of the gate.",
            labels=["evidence", "verdict"],
        )
        with self._lock:
            for labels, count in self._evaluations.items():
                family.add_metric(labels, count)
        return family

    def _counted_closures(self) -> CounterMetricFamily:
        family = CounterMetricFamily(
            "rprime_connections_closed",
            "Connections that the server closed, by reason.",
            labels=["reason"],
        )
        for reason, count in self._closed.items():
            family.add_metric([reason], count)
        return family

    def _counted_ends_of_workers(self) -> CounterMetricFamily:
        family = CounterMetricFamily(
            "rprime_workers_ended",
            "Worker processes that ended instead of answering, by the signal; each was replaced.",
            labels=["reason"],
        )
        for reason, count in self._workers_ended.items():
            family.add_metric([reason], count)
        return family
