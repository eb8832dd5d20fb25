"""A machine inside the machine: runs commands as another user, where every address leads to one recorder.

`trap.py` starts this file as a program. It enters its own network and mount namespaces, routes every IPv4 and IPv6
address to the loopback device, answers DNS and HTTP itself, and records each packet. It watches files for being opened.
Requests and answers are JSON values, one a line, on standard input and output. It imports the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any, Final

PORTS: Final = (25, 80, 443, 587, 8099)
"""The ports where the recorder answers HTTP. A connection to any other port is recorded, and refused."""
PUBLIC: Final = "93.184.216.34"
"""What DNS answers for a name, unless the name starts with `inner`: a globally routable address."""
INNER: Final = "10.9.8.7"
NOBODY: Final = 65534
REPLY: Final = b'{"text": "from the recorder", "result": {"text": "x"}, "jsonrpc": "2.0", "id": 1, "choices": []}'
SECONDS: Final = 120

_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
_PRIVATE, _BIND = 0x4000 | (1 << 18), 0x1000
_WATCHED: Final = {
    0x1: "read",
    0x2: "written",
    0x20: "opened",
    0x100: "created",
    0x200: "deleted",
    0x80: "moved",
}
_ALL_PACKETS, _OUTGOING = 0x0003, 4
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> int:
    """The result of a function of the C library. Raises OSError."""
    result: int = getattr(_libc, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


# -- the machine -------------------------------------------------------------------------------------------------------


def enter_machine() -> str:
    """Leave the network and the mounts of the caller. Returns how far that went: `machine`, or the reason why not."""
    uid, gid = os.getuid(), os.getgid()
    try:
        if uid == 0:
            _call("unshare", _NEW_MOUNTS | _NEW_NETWORK)
        else:
            _call("unshare", _NEW_USER | _NEW_MOUNTS | _NEW_NETWORK)
            for file, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{uid} {uid} 1"),
                ("gid_map", f"{gid} {gid} 1"),
            ):
                with open(f"/proc/self/{file}", "w") as handle:
                    handle.write(text)
        _call("mount", b"none", b"/", None, _PRIVATE, None)
        _raise_loopback()
        _route_everything(socket.AF_INET)
        with contextlib.suppress(OSError):  # a machine without IPv6 has no such route to take
            _route_everything(socket.AF_INET6)
        _name_servers()
        if uid == 0:
            _open_to_others(
                (sys.base_prefix, sys.prefix, os.path.dirname(os.path.abspath(__file__)))
            )
    except OSError as error:
        return f"no namespaces: {error}"
    return "machine"


def _raise_loopback() -> None:
    request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, request)


def _route_everything(family: socket.AddressFamily) -> None:
    """What `ip route add local default dev lo` does."""
    route = struct.pack("BBBBBBBBI", family, 0, 0, 0, 255, 4, 254, 2, 0)
    route += struct.pack("HHI", 8, 4, socket.if_nametoindex("lo"))
    header = struct.pack("IHHII", 16 + len(route), 24, 0x1 | 0x4 | 0x400, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(header + route)
        error = struct.unpack_from("i", netlink.recv(4096), 16)[0]
    if error:
        raise OSError(-error, f"route: {os.strerror(-error)}")


def _name_servers() -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as file:
        file.write("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
    os.chmod(file.name, 0o644)
    real = os.path.realpath("/etc/resolv.conf")
    _call("mount", os.fsencode(file.name), os.fsencode(real), None, _BIND, None)
    os.unlink(file.name)


def _open_to_others(needed: tuple[str, ...]) -> None:
    """Give other users a way to the interpreter and the checkout: a folder on the way that is closed to them is covered
    by an empty one that holds these alone."""
    checkout = os.path.dirname(os.path.dirname(needed[-1]))
    paths = [os.path.realpath(path) for path in (*needed[:-1], checkout)]
    opened = {path: os.open(path, os.O_PATH) for path in paths}
    covered = {folder for path in paths if (folder := _closed_folder(path))}
    for folder in covered:
        _call("mount", b"none", os.fsencode(folder), b"tmpfs", 0, b"mode=755")
    for path, handle in opened.items():
        if any(path.startswith(f"{folder}/") for folder in covered) and not os.path.exists(path):
            os.makedirs(path)
            _call("mount", b"/proc/self/fd/%d" % handle, os.fsencode(path), None, _BIND, None)


def _closed_folder(path: str) -> str:
    """The topmost folder on the way to a path that other users may not enter; empty without one."""
    folders = [path]
    while folders[-1] != "/":
        folders.append(os.path.dirname(folders[-1]))
    return next((folder for folder in reversed(folders) if not os.stat(folder).st_mode & 0o001), "")


# -- the recorder ------------------------------------------------------------------------------------------------------


def answer_names(server: socket.socket) -> None:
    """A DNS server: any name has one address, of IPv4 alone."""
    while True:
        query, peer = server.recvfrom(4096)
        name = _name_of(query)
        end = 12 + len(name) + 2
        kind = struct.unpack_from("!H", query, end)[0]
        address = INNER if name.startswith("inner") else PUBLIC
        answer = b""
        if kind == 1:
            answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(address)
        head = query[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, int(kind == 1), 0, 0)
        server.sendto(head + query[12 : end + 4] + answer, peer)


def _name_of(query: bytes) -> str:
    """The name of a DNS query."""
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels)


def answer_calls(server: socket.socket) -> None:
    """An HTTP server: every request gets the same reply, one for an MCP server none."""
    while True:
        connection, _ = server.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    head = f"Content-Type: application/json\r\nContent-Length: {len(REPLY)}\r\n\r\n"
    with contextlib.suppress(OSError), connection:
        connection.settimeout(20)
        data = b""
        while more := connection.recv(65536):
            data += more
            if _is_whole(data):
                status = "404 Not Found" if b"/mcp " in data[:200] else "200 OK"
                connection.sendall(f"HTTP/1.1 {status}\r\n{head}".encode() + REPLY)
                data = b""


def _is_whole(request: bytes) -> bool:
    """Whether a request has its head and, where it names a length, its body."""
    head, end, body = request.partition(b"\r\n\r\n")
    lengths = [
        line.partition(b":")[2]
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    ]
    return bool(end) and len(body) >= (int(lengths[0]) if lengths else 0)


def start_servers() -> None:
    """Answer names and calls at every address."""
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("0.0.0.0", 53))
    threading.Thread(target=answer_names, args=(names,), daemon=True).start()
    for port in PORTS:
        server = socket.create_server(("", port), family=socket.AF_INET, backlog=100)
        threading.Thread(target=answer_calls, args=(server,), daemon=True).start()
        with contextlib.suppress(OSError):
            second = socket.create_server(("::", port), family=socket.AF_INET6, backlog=100)
            threading.Thread(target=answer_calls, args=(second,), daemon=True).start()


class Recorder:
    """Every packet that a program of this machine sends. The kernel queues it before the program's call returns."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PACKETS))
        with contextlib.suppress(OSError):  # more than the usual bound, where the user may set it
            self._socket.setsockopt(socket.SOL_SOCKET, 33, 64 * 1024 * 1024)
        self._socket.bind(("lo", 0))
        self._socket.setblocking(False)

    def take(self) -> list[dict[str, str]]:
        """What was sent since the last time: one entry for each target, with the bytes as hexadecimal text."""
        begun: dict[tuple[Any, ...], bytearray] = {}
        for frame in self._frames():
            packet = _parse(frame)
            if packet is None:
                continue
            protocol, source, target, is_start, data = packet
            flow = (protocol, source, target)
            if is_start or (protocol == "udp" and source[1] != 53):
                begun.setdefault(flow, bytearray())
            if flow in begun:
                begun[flow] += data
        return [
            {"protocol": protocol, "host": target[0], "port": str(target[1]), "data": data.hex()}
            for (protocol, _, target), data in begun.items()
        ]

    def _frames(self) -> Iterator[bytes]:
        while True:
            try:
                frame, address = self._socket.recvfrom(262_144)
            except BlockingIOError:
                return
            if address[2] == _OUTGOING:
                yield frame


_End = tuple[str, int]


def _parse(frame: bytes) -> tuple[str, _End, _End, bool, bytes] | None:
    """Protocol, source, target, whether a TCP connection starts, and the data; None for other packets."""
    kind = struct.unpack_from("!H", frame, 12)[0]
    packet = frame[14:]
    if kind == 0x0800:
        length, number = (packet[0] & 0xF) * 4, packet[9]
        packet = packet[: struct.unpack_from("!H", packet, 2)[0] or None]
        source, target = (socket.inet_ntop(socket.AF_INET, packet[at : at + 4]) for at in (12, 16))
    elif kind == 0x86DD:
        length, number = 40, packet[6]
        source, target = (socket.inet_ntop(socket.AF_INET6, packet[at : at + 16]) for at in (8, 24))
    else:
        return None
    body = packet[length:]
    if number not in (6, 17):
        return (f"ip-{number}", (source, 0), (target, 0), number not in (1, 58), body)
    ports = struct.unpack_from("!HH", body)
    ends = (source, ports[0]), (target, ports[1])
    if number == 17:
        return ("udp", *ends, False, body[8:])
    return ("tcp", *ends, body[13] & 0x12 == 0x02, body[(body[12] >> 4) * 4 :])


# -- the files ---------------------------------------------------------------------------------------------------------


class Watcher:
    """What happened to files, as the kernel reports it. Each file, and each folder, is named for itself."""

    def __init__(self) -> None:
        self._handle = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._names: dict[int, str] = {}

    def watch(self, path: str) -> None:
        """Record from now on what happens to a path. Raises OSError."""
        number = _call("inotify_add_watch", self._handle, os.fsencode(path), sum(_WATCHED))
        self._names[number] = path

    def take(self) -> list[str]:
        """What happened since the last time, as `opened /path`."""
        found: dict[str, None] = {}
        while True:
            try:
                data = os.read(self._handle, 1 << 20)
            except BlockingIOError:
                return list(found)
            at = 0
            while at < len(data):
                number, mask, _, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode("utf-8", "replace")
                path = (
                    os.path.join(self._names.get(number, "?"), name)
                    if name
                    else self._names.get(number, "?")
                )
                for bit, word in _WATCHED.items():
                    if mask & bit:
                        found[f"{word} {path}"] = None
                at += 16 + length


# -- commands ----------------------------------------------------------------------------------------------------------


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run one command; its exit code and what it wrote. A command that does not end is killed with its group."""
    identity: dict[str, Any] = {}
    if os.getuid() == 0 and request["other_user"]:
        identity = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    process = subprocess.Popen(
        request["words"], cwd=request["directory"], env=request["environ"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **identity,
    )  # fmt: skip
    try:
        out, err = process.communicate(request["input"].encode("utf-8", "surrogateescape"), SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += b"\nthe command did not end, and was killed"
    return {"code": process.returncode, "out": out.decode("latin-1"), "err": err.decode("latin-1")}


def main() -> None:
    """Serve requests until standard input ends."""
    mode = enter_machine()
    recorder = None
    if mode == "machine":
        recorder = Recorder()
        start_servers()
        recorder.take()
    watcher = Watcher()
    print(json.dumps({"mode": mode}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        for path in request.get("watch", ()):
            watcher.watch(path)
        if "words" in request:
            watcher.take()
            answer = run(request)
            answer["sent"] = recorder.take() if recorder else []
            answer["touched"] = watcher.take()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
