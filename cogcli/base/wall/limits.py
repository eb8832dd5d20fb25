"""The limits of a process behind the wall."""

from __future__ import annotations

import sys

from cogcli.base.named_tuple import NamedTuple

MIB = 1024 * 1024


class ProcessLimits(NamedTuple):
    """The limits of a process: bytes of input, address space and output, and seconds.

    The seconds limit both elapsed time and processor time.
    """

    input_bytes: int
    memory_bytes: int
    seconds: int
    output_bytes: int


def apply_limits(limits: ProcessLimits) -> None:
    """Limit memory, processor time, files and output of this process, if the system can."""
    try:
        import resource
    except ImportError:
        return
    bounds = {
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_CPU: limits.seconds,
        resource.RLIMIT_FSIZE: limits.output_bytes,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    for what, maximum in bounds.items():
        _, hard = resource.getrlimit(what)
        maximum = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
        try:
            resource.setrlimit(what, (maximum, maximum))
        except (ValueError, OSError):
            if (
                sys.platform == "linux"
            ):  # elsewhere a limit may be below what the process uses already
                raise
