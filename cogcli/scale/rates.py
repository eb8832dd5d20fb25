"""The rates of services: how many calls a second the lines of all batches on this machine may make
(docs/reference/batch.md#rates).

1. A line is sent only when there is room for the calls that it is expected to make. So waiting is no part of a run: it
   counts in no latency and in no time limit.
2. The expected number of calls is the average of the lines so far. At the end of a line the difference to its real
   number is taken or given back, so the rate holds on average, and a burst is at most one second of calls or one line.
3. The state of a service is a small file with a lock, so that several batches of a user share it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from cogcli.base.canonical import digest_of
from cogcli.base.errors import UsageError
from cogcli.base.file_lock import lock
from cogcli.base.problems import suggestion
from cogcli.declarations.service_spec import Service
from cogcli.episode.folder import Folder, disk_refusal, read_at, write_all
from cogcli.specs.catalog import Catalog

FOLDER: Final = "rates"
_LARGEST: Final = 256
_LEAST_BURST: Final = 1.0
_ROUNDING: Final = 1e-9
MOST_RATE: Final = 1_000_000.0


class SharedBucket:
    """The calls of one service that may be made now, in a file that all batches of the user share."""

    def __init__(
        self, folder: Path, name: str, rate: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._name = name
        self.rate = rate
        self._clock = clock

    def change(self, calls: float, burst: float) -> float:
        """Take so many calls; a negative number gives them back. Return what is left, negative for a debt.

        Raise EnvironmentRefusal `env.disk`.
        """
        try:
            with Folder.open(self._folder, make=True) as folder:
                fd = folder.descriptor(self._name, os.O_RDWR | os.O_CREAT)
            try:
                lock(fd, wait=True)
                return self._change(fd, calls, burst)
            finally:
                os.close(fd)
        except OSError as error:
            raise disk_refusal(self._folder / self._name, error) from error

    def _change(self, fd: int, calls: float, burst: float) -> float:
        now = self._clock()
        tokens = burst
        with suppress(ValueError, TypeError):  # a file without a state: nothing was called
            before, at = orjson.loads(read_at(fd, _LARGEST, 0))
            tokens = min(burst, before + max(0.0, now - at) * self.rate)
        data = orjson.dumps([tokens - calls, now])
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        write_all(fd, data)
        return tokens - calls


class ServiceGate:
    """The rate of one service, and how many calls a line makes to it on average."""

    def __init__(self, bucket: SharedBucket) -> None:
        self._bucket = bucket
        self._lines = 0
        self._calls = 0

    @property
    def _expected(self) -> float:
        return self._calls / self._lines if self._lines else 1.0

    @property
    def _burst(self) -> float:
        return max(_LEAST_BURST, self._bucket.rate, self._expected)

    def seconds_left(self) -> float:
        """Return how long no line may be sent."""
        missing = self._expected - self._bucket.change(0, self._burst)
        return max(0.0, missing / self._bucket.rate) if missing > _ROUNDING else 0.0

    def reserve(self) -> float:
        """Take the expected calls of a line, and return their number."""
        expected = self._expected
        self._bucket.change(expected, self._burst)
        return expected

    def settle(self, expected: float, calls: int) -> None:
        """Take the difference between the real calls of a line and the expected ones."""
        self._lines += 1
        self._calls += calls
        if calls != expected:
            self._bucket.change(calls - expected, self._burst)


class ServiceRates:
    """The rates of all services that a batch limits."""

    def __init__(self, gates: Mapping[str, ServiceGate]) -> None:
        self._gates = gates
        self._reserved: dict[int, dict[str, float]] = {}

    def seconds_left(self) -> float:
        """Return how long no line may be sent; 0 if one may be sent now."""
        return max((gate.seconds_left() for gate in self._gates.values()), default=0.0)

    def reserve(self, line: int) -> None:
        """Take the calls that a line is expected to make."""
        if self._gates:
            reserved = {service: gate.reserve() for service, gate in self._gates.items()}
            self._reserved[line] = reserved

    def settle(self, line: int, calls: Mapping[str, int]) -> None:
        """Take the difference between the real calls of a line and the expected ones."""
        for service, expected in self._reserved.pop(line, {}).items():
            self._gates[service].settle(expected, calls.get(service, 0))


def find_rates(catalog: Catalog, given: Mapping[str, float]) -> dict[str, float]:
    """Return the rate of each service that has one: the lower of its file and of the command.

    Raise UsageError for a service that the skill does not reach.
    """
    for service in given:
        if service not in catalog.services:
            hint = suggestion(service, sorted(catalog.services))
            text = f"`--rate {service}`: the skill reaches no such service"
            raise UsageError("usage.value", text, hint=hint)
    rates = dict(given)
    for id, service_spec in catalog.services.items():
        own = service_spec.metadata.max_rate
        if own is not None:
            rates[id] = min(parse_rate(own), rates.get(id, parse_rate(own)))
    return rates


def parse_rate(text: str) -> float:
    """Return the calls a second of a text such as `5/s` or `0.5/s`. Raise ValueError."""
    number = float(text.removesuffix("/s"))
    if not (text.endswith("/s") and 0 < number <= MOST_RATE):
        raise ValueError(text)
    return number


def open_rates(
    state_dir: str, services: Mapping[str, Service], rates: Mapping[str, float], parts: int
) -> ServiceRates:
    """Return the gates of these rates; of several shards each gets an equal part."""
    folder = Path(os.path.realpath(state_dir)) / FOLDER
    gates = {}
    for id, rate in rates.items():
        service = services[id]
        name = digest_of([id, service.kind, service.module, service.settings]).removeprefix(
            "sha256:"
        )
        gates[id] = ServiceGate(SharedBucket(folder, name[:32], rate / parts))
    return ServiceRates(gates)
