"""The words of `--executor`, and which address of a Dask scheduler may be used (docs/reference/batch.md#dask).

Anyone who reaches a scheduler runs code on its workers. So its address is a loopback IP, or TLS with certificates of
both sides.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from cogcli.base.errors import ServiceResolutionError, UsageError
from cogcli.base.extras import install_line, missing_module

LOCAL: Final = "local"
DASK: Final = "dask"
EXTRA: Final = "scale"
_EXPECTED: Final = "local, dask, or dask:ADDR with the address of a scheduler"


def parse_executor(text: str) -> str:
    """Return the words of `--executor`. Raise UsageError for anything else."""
    name, _, address = text.partition(":")
    if text not in (LOCAL, DASK) and not (name == DASK and address):
        raise UsageError("usage.value", f"`--executor`: found `{text:.80}`", expected=_EXPECTED)
    return text


def is_dask(executor: str) -> bool:
    """Return whether lines run on Dask workers."""
    return executor.partition(":")[0] == DASK


def address_of(executor: str) -> str:
    """Return the address of the scheduler; empty if the batch starts one."""
    return executor.partition(":")[2]


def require_executor(executor: str) -> None:
    """Raise ServiceResolutionError `env.extra` without the library, UsageError `batch.plain-address` for an address
    that strangers may reach.
    """
    if not is_dask(executor):
        return
    if missing_module(EXTRA):
        raise ServiceResolutionError(
            "env.extra",
            f"`--executor {executor:.80}` needs the extra `{EXTRA}`",
            hint=install_line(EXTRA),
        )
    if address := address_of(executor):
        _require_private_address(address)


def _require_private_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        scheme, host, port = "", "", None
    if not host or not port:
        raise _plain_error(address, "it is no address with a port")
    if scheme == "tcp" and not _is_loopback(host):
        raise _plain_error(address, "anyone who reaches it can run code on the workers")
    if scheme not in ("tcp", "tls"):
        raise _plain_error(address, f"`{scheme:.20}` is not known to be encrypted")
    if scheme == "tls" and (missing := _find_missing_settings()):
        raise _plain_error(address, f"Dask's settings lack {', '.join(missing)}")


def _is_loopback(host: str) -> bool:
    """Return whether a host is a loopback IP. A name may resolve to any address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _find_missing_settings() -> list[str]:
    """Return the names of Dask's settings for TLS that have no value."""
    from distributed import Security

    security = Security()
    found = {
        "distributed.comm.tls.ca-file": security.tls_ca_file,
        "distributed.comm.tls.client.cert": security.tls_client_cert,
        "distributed.comm.tls.client.key": security.tls_client_key,
        "distributed.comm.require-encryption": security.require_encryption,
    }
    return [name for name, value in found.items() if not value]


def _plain_error(address: str, reason: str) -> UsageError:
    return UsageError(
        "batch.plain-address",
        f"the scheduler `{address:.80}` is not used: {reason}",
        expected="tcp:// with a loopback IP and a port, or tls:// with CA, certificate, key and require-encryption",
        found=address[:80],
        hint="set the TLS settings of Dask, here and on the cluster: docs/how-to/run-a-batch.md",
    )
