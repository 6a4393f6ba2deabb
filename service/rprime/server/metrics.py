"""Metrics: what the process has done so far and what it does now, as Prometheus reads it."""

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
"""Seconds: upper limits."""
METHODS = frozenset({"DELETE", "GET", "OPTIONS", "POST", "PUT"})
OTHER = "other"
"""A method or a path that the service does not know: nobody makes series by asking for them."""
_BOUNDS = (*map(str, BUCKETS), "+Inf")


@dataclass(slots=True)
class _Durations:
    """How long the requests of one kind took."""

    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * len(_BOUNDS))

    def cumulated(self) -> list[tuple[str, float]]:
        return [(bound, sum(self.buckets[: i + 1])) for i, bound in enumerate(_BOUNDS)]


@dataclass(frozen=True)
class Gauge:
    """What is so at the time of asking.

    Parameters
    ----------
    name, documentation
        Of the metric.
    label
        By which `read` tells its values apart; empty for one value without a label.
    read
        Gives the values. It does not block.
    """

    name: str
    documentation: str
    label: str
    read: Callable[[], Mapping[str, float]]

    def family(self) -> GaugeMetricFamily:
        """Ask now."""
        names = [self.label] if self.label else []
        family = GaugeMetricFamily(self.name, self.documentation, labels=names)
        for label, value in self.read().items():
            family.add_metric([label] if self.label else [], value)
        return family


class Metrics(Collector):
    """The metrics of one process.

    Every request is counted here, so it is counted in plain numbers: an observation of
    prometheus_client costs several times as much.

    Parameters
    ----------
    version
        Of the service.
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
        # Of several workers each answers for itself, and says which one it is.
        self._worker = {} if parent_process() is None else {"worker": str(getpid())}

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered; in the event loop only."""
        key = (method, route, status // 100)
        durations = self._requests.get(key)
        if durations is None:
            durations = self._requests[key] = _Durations()
        durations.seconds += seconds
        durations.buckets[bisect_left(BUCKETS, seconds)] += 1

    def evaluated(self, evidence: str, verdict: str | None) -> None:
        """Count an evaluation, by its kind of evidence and its verdict; in any thread."""
        with self._lock:
            self._evaluations[evidence, verdict or "none"] += 1

    def closed(self, reason: str) -> None:
        """Count a connection that was given up; in the event loop only."""
        self._closed[reason] += 1

    def worker_ended(self, reason: str) -> None:
        """Count a worker process that ended instead of answering; in the event loop only."""
        self._workers_ended[reason] += 1

    def watch(self, *gauges: Gauge) -> None:
        """Ask for these, too, whenever the metrics are asked for."""
        self._gauges += gauges

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Give the metrics as text, and its media type, in the format that was asked for."""
        registry = CollectorRegistry()
        registry.register(self)
        encode, media = choose_encoder(accept)
        return encode(registry), media

    def collect(self) -> Iterator[Metric]:
        """Give every metric."""
        for family in self._families():
            if self._worker:
                family.samples = [
                    sample._replace(labels={**sample.labels, **self._worker})
                    for sample in family.samples
                ]
            yield family

    def _families(self) -> Iterator[Metric]:
        yield InfoMetricFamily("rprime", "What runs here.", {"version": self._version})
        yield self._request_seconds()
        yield self._counted_evaluations()
        yield self._counted_closures()
        yield self._counted_ends_of_workers()
        yield from (gauge.family() for gauge in self._gauges)
        yield from self._process.collect()

    def _request_seconds(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "rprime_request_seconds",
            "Requests, from their head to the end of their answer; status none: the client left.",
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
            "Evaluations, by kind of evidence and verdict of the gate.",
            labels=["evidence", "verdict"],
        )
        with self._lock:
            for labels, count in self._evaluations.items():
                family.add_metric(labels, count)
        return family

    def _counted_closures(self) -> CounterMetricFamily:
        family = CounterMetricFamily(
            "rprime_connections_closed",
            "Connections that were given up, by what their client did not do.",
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
