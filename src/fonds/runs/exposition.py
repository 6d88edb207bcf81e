"""Figures in the words of Prometheus: families of samples, and the text they are told in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
"""What `exposed` gives, as HTTP calls it."""

T = TypeVar("T")
Samples = Iterable[tuple[Sequence[str], T]]
"""Values by those of their labels."""


class Spread(Protocol):
    """How values are spread: those not above each bound, all, and their sum."""

    @property
    def count(self) -> int:
        """All values."""
        ...

    @property
    def sum(self) -> float:
        """Of all values."""
        ...

    @property
    def buckets(self) -> tuple[tuple[int, int], ...]:
        """Bounds, and how many values are not above them."""
        ...


def exposed(families: Iterable[Metric]) -> str:
    """Families in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Told(families))
    return generate_latest(registry).decode()


class _Told(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def only(value: T) -> list[tuple[Sequence[str], T]]:
    """A value without labels."""
    return [((), value)]


def gauge(name: str, about: str, values: Samples[float], labels: Sequence[str] = ()) -> Metric:
    """What goes up and down."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def counter(name: str, about: str, values: Samples[float], labels: Sequence[str] = ()) -> Metric:
    """What only goes up; `_total` is added to its name."""
    family = CounterMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def histogram(name: str, about: str, values: Samples[Spread], labels: Sequence[str] = ()) -> Metric:
    """How values are spread."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for key, spread in values:
        buckets = [(str(float(bound)), count) for bound, count in spread.buckets]
        family.add_metric(key, [*buckets, ("+Inf", spread.count)], spread.sum)
    return family
