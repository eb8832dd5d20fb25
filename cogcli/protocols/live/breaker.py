"""The circuit breaker: a service that keeps failing is not called for a while
(docs/reference/execution.md#breaker).

1. Faults of the service count: unreachable, late, overloaded, failed. Faults of the caller, mapping
   and safety neither count nor end a row.
2. The fifth fault in a row opens the circuit for 30 seconds. While it is open nothing is sent.
3. After that one call is let through to probe the service, the others are still refused. Success
   closes the circuit, a fault opens it again; whatever else happens leaves it to the next call to
   probe.
4. What was sent before the circuit opened opens it no longer, but success closes it.
5. Circuits belong to the process, not to a run. A run's log records each refusal as an attempt, so
   that resume and replay do not depend on the state of a circuit."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Final

from cogcli.base.errors import TransportError
from cogcli.declarations.service_spec import Service

THRESHOLD: Final = 5
OPEN_SECONDS: Final = 30.0
FAULTS: Final = frozenset(
    ("call.transport", "call.timeout", "call.overloaded", "call.server-error")
)


class CircuitPermit:
    """The permission for one call through a circuit. Only the first result that is reported for it
    counts."""

    def __init__(self, circuit: Circuit, *, probing: bool) -> None:
        self._circuit = circuit
        self._probing = probing
        self._reported = False

    def record_success(self) -> None:
        """Report that the service answered as expected."""
        self._report_once("success")

    def record_failure(self, code: str) -> None:
        """Report that the call ended with this error code."""
        self._report_once("fault" if code in FAULTS else "neither")

    def record_abandoned(self) -> None:
        """Report that the call was abandoned, so that its result does not count."""
        self._report_once("neither")

    def _report_once(self, what: str) -> None:
        if self._reported:  # never taken back, so that it needs no lock
            return
        with self._circuit.lock:
            if not self._reported:
                self._reported = True
                self._circuit.count(what, probing=self._probing)


class Circuit:
    """The circuit of one service."""

    def __init__(self, service_id: str, now: Callable[[], float]) -> None:
        self.lock = threading.Lock()
        self._service_id = service_id
        self._now = now
        self._faults = 0
        self._open_until: float | None = None
        self._probed = False

    def passage(self) -> CircuitPermit:
        """Return the permission for one more call. Raise TransportError `call.circuit-open` if the
        circuit is open."""
        with self.lock:
            if self._open_until is None:
                return CircuitPermit(self, probing=False)
            rest = self._open_until - self._now()
            if rest > 0 or self._probed:
                when = f"for {math.ceil(rest)} s more" if rest > 0 else "while one call probes it"
                text = f"service `{self._service_id}` failed {THRESHOLD} times in a row and is left alone {when}"
                raise TransportError("call.circuit-open", text, left=False)
            self._probed = True
            return CircuitPermit(self, probing=True)

    def count(self, what: str, *, probing: bool) -> None:
        """Count the end of a call: success, fault or neither. The caller holds the lock."""
        if probing:
            self._probed = False
        if what == "success":
            self._faults, self._open_until = 0, None
        elif what == "fault" and (probing or self._open_until is None):
            self._faults += 1
            if probing or self._faults >= THRESHOLD:
                self._open_until = self._now() + OPEN_SECONDS


class Circuits:
    """One circuit per service. Services with the same id in different layers or folders have
    separate ones."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._circuits: dict[tuple[str, str, str], Circuit] = {}

    def passage(self, service: Service) -> CircuitPermit:
        """Return the permission for one more call to a service. Raise TransportError
        `call.circuit-open`."""
        return self.circuit_of(service).passage()

    def circuit_of(self, service: Service) -> Circuit:
        """Return the circuit of a service, the same object for each call."""
        key = (service.layer, service.root, service.id)
        circuit = self._circuits.get(key)
        if circuit is None:
            circuit = self._circuits.setdefault(key, Circuit(service.id, self._now))
        return circuit


@cache
def process_circuits() -> Circuits:
    """Return the circuits that all runs of this process share."""
    return Circuits()
