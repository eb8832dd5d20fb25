"""The rates of services: how many calls a second the lines of all batches on this machine may make
(docs/reference/batch.md#rates).

1. A line is sent only when there is room for the calls that it is expected to make. So waiting is no part of a run: it
   counts in no latency and in no time limit.
2. The expected number of calls is the average of the lines so far. At the end of a line the difference to its real
   number is taken or given back, so the rate holds on average, and a burst is at most one second of calls or one line.
3. The state of a service is a small file with a lock, so that several batches of a user share it. A service that
   answers 429 with `Retry-After` is left alone by all of them.
4. Slots bound how many lines reach a service at a time (`service_slots`).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson

from cogcli.base.canonical import digest_of
from cogcli.base.errors import UsageError
from cogcli.base.file_lock import lock
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.service_spec import Service
from cogcli.episode.folder import Folder, disk_errors, read_at, write_all
from cogcli.scale.service_slots import ServiceSlots
from cogcli.specs.catalog import Catalog

FOLDER: Final = "rates"
_LARGEST: Final = 256
_LEAST_BURST: Final = 1.0
_ROUNDING: Final = 1e-9
MOST_RATE: Final = 1_000_000.0
MOST_HELD: Final = 600.0
"""The longest pause that a service may ask for. A file with a longer one has no state."""
_NO_SLOT: Final = 0.1
"""Seconds until slots are looked at again."""


class BucketState(NamedTuple):
    """The calls that a service may receive now (negative for a debt), the time of that count, and the end of a
    pause.
    """

    tokens: float
    at: float
    until: float = 0.0


class SharedBucket:
    """The calls that one service may receive now, in a file that all batches of the user share."""

    def __init__(
        self,
        folder: Path,
        name: str,
        rate: float = math.inf,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._name = name
        self.rate = rate
        self._clock = clock

    def change(self, calls: float, burst: float, held: float = 0.0) -> float:
        """Subtract `calls` from the bucket; a negative number returns calls. `held` pauses the service for that many
        seconds. Return the calls left, negative for a debt. Raise UnusableEnvironment `env.disk`.
        """
        with disk_errors(self._folder / self._name):
            with Folder.open(self._folder, make=True) as folder:
                fd = folder.descriptor(self._name, os.O_RDWR | os.O_CREAT)
            try:
                lock(fd, wait=True)
                return self._change_locked(fd, calls, burst, held)
            finally:
                os.close(fd)

    def _change_locked(self, fd: int, calls: float, burst: float, held: float) -> float:
        now = self._clock()
        before = _read_state(fd, burst, now)
        grown = 0.0 if math.isinf(self.rate) else max(0.0, now - before.at) * self.rate
        tokens = min(burst, before.tokens + grown) - calls
        until = before.until if before.until > now else 0.0
        until = max(until, now + held) if held else until
        data = orjson.dumps([tokens, now, until] if until else [tokens, now])
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        write_all(fd, data)
        self.seconds_held = until - now if until else 0.0
        return tokens

    seconds_held = 0.0
    """The remaining pause in seconds at the last change."""


def _read_state(fd: int, burst: float, now: float) -> BucketState:
    """Return the state in a file. An empty file means that no call was made."""
    with suppress(ValueError, TypeError):
        state = BucketState(*map(float, orjson.loads(read_at(fd, _LARGEST, 0))))
        if all(map(math.isfinite, state)) and state.until - now <= MOST_HELD:
            return state
    return BucketState(burst, now)


class ServiceGate:
    """The rate limit of one service, and the average number of calls that a line makes to it."""

    def __init__(self, bucket: SharedBucket, slots: ServiceSlots | None = None) -> None:
        """`slots` limit how many lines use the service at the same time."""
        self._bucket = bucket
        self.slots = slots
        self._lines = 0
        self._calls = 0

    @property
    def _expected_calls(self) -> float:
        return self._calls / self._lines if self._lines else 1.0

    @property
    def _burst_calls(self) -> float:
        rate = 0.0 if math.isinf(self._bucket.rate) else self._bucket.rate
        return max(_LEAST_BURST, rate, self._expected_calls)

    def seconds_left(self) -> float:
        """Return the seconds until a line may be sent."""
        rate = self._bucket.rate
        missing = self._expected_calls - self._bucket.change(0, self._burst_calls)
        if held := self._bucket.seconds_held:
            return held
        if missing > _ROUNDING and not math.isinf(rate):
            return max(0.0, missing / rate)
        return 0.0 if self.slots is None or self.slots.take() else _NO_SLOT

    def reserve(self, line: int) -> float:
        """Reserve the expected calls of a line, and return their number."""
        expected = self._expected_calls
        if not math.isinf(self._bucket.rate):
            self._bucket.change(expected, self._burst_calls)
        if self.slots is not None:
            self.slots.reserve(line)
        return expected

    def settle(self, line: int, expected: float, calls: int, held: float) -> None:
        """Charge the difference between the actual and the expected calls of a line. `held` is the pause that the
        service requested, in seconds.
        """
        self._lines += 1
        self._calls += calls
        difference = 0.0 if math.isinf(self._bucket.rate) else calls - expected
        if difference or held:
            self._bucket.change(difference, self._burst_calls, min(held, MOST_HELD))
        if self.slots is not None:
            self.slots.release(line)


class ServiceRates:
    """The rate limits of all services that a batch limits."""

    def __init__(self, gates: Mapping[str, ServiceGate]) -> None:
        self._gates = gates
        self._reserved: dict[int, dict[str, float]] = {}

    def seconds_left(self) -> float:
        """Return the seconds until a line may be sent; 0 if one may be sent now."""
        seconds = max((gate.seconds_left() for gate in self._gates.values()), default=0.0)
        if seconds:
            self.rest()  # two batches must not hold a slot each that the other waits for
        return seconds

    def reserve(self, line: int) -> None:
        """Reserve the calls that a line is expected to make."""
        if self._gates:
            reserved = {service: gate.reserve(line) for service, gate in self._gates.items()}
            self._reserved[line] = reserved

    def settle(
        self, line: int, calls: Mapping[str, int], held: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """Charge the difference between the actual and the expected calls of a line. `held` are the pauses that
        services requested, in seconds.
        """
        for service, expected in self._reserved.pop(line, {}).items():
            gate = self._gates[service]
            gate.settle(line, expected, calls.get(service, 0), held.get(service, 0.0))

    def rest(self) -> None:
        """Release the reservations for a line that will not be sent."""
        for gate in self._gates.values():
            if gate.slots is not None:
                gate.slots.rest()


def find_rates(catalog: Catalog, given: Mapping[str, float]) -> dict[str, float]:
    """Return the rate of each limited service: the lower of its file's and the command's. Raise UsageError for a
    service that the skill does not reach.
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
    """Return the calls per second of a text such as `5/s` or `0.5/s`. Raise ValueError."""
    number = float(text.removesuffix("/s"))
    if not (text.endswith("/s") and 0 < number <= MOST_RATE):
        raise ValueError(text)
    return number


def is_limited(service: Service, catalog: Catalog) -> bool:
    """Return whether lines may have to wait for a service, because it has a limit or may ask for a pause."""
    metadata = service.metadata
    return bool(metadata.max_rate or metadata.max_concurrent) or not catalog.runs_functions(service)


def open_rates(
    state_dir: str, catalog: Catalog, rates: Mapping[str, float], parts: int
) -> ServiceRates:
    """Return the gates of the services with a limit. Each of `parts` shards receives an equal part of a rate."""
    folder = Path(os.path.realpath(state_dir)) / FOLDER
    gates = {}
    for id, service in catalog.services.items():
        if id not in rates and not is_limited(service, catalog):
            continue
        name = digest_of([id, service.kind, service.module, service.settings]).removeprefix(
            "sha256:"
        )[:32]
        most = service.metadata.max_concurrent
        slots = None if most is None else ServiceSlots(folder, name, most)
        bucket = SharedBucket(folder, name, rates[id] / parts if id in rates else math.inf)
        gates[id] = ServiceGate(bucket, slots)
    return ServiceRates(gates)
