"""The trap itself: it sees what it is there to see."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if sys.platform != "linux":
    pytest.skip("namespaces and inotify are those of Linux", allow_module_level=True)

from trap import HOST, URL, TrapMachine, trap_machine

pytestmark = pytest.mark.sampled(8)


@pytest.fixture(scope="module")
def machine() -> Iterator[TrapMachine]:
    with trap_machine() as made:
        yield made


CALLS = {
    "a public name": (
        f"urllib.request.urlopen('{URL}/' + os.environ['A_CANARY'])",
        "sent a canary",
    ),
    "a private address": ("socket.create_connection(('10.1.2.3', 8099))", "sent to 10.1.2.3:8099"),
    "this machine": ("socket.create_connection(('127.0.0.1', 8099))", "sent to 127.0.0.1:8099"),
    "a port where nothing answers": (
        "socket.create_connection(('8.8.8.8', 4711))",
        "sent to 8.8.8.8:4711",
    ),
    "IPv6": ("socket.create_connection(('2606:4700::1', 80))", "sent to 2606:4700::1:80"),
    "a datagram": (
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('1.2.3.4', 9))",
        "sent to 1.2.3.4:9",
    ),
    "a name alone": (f"socket.getaddrinfo('x.{HOST}', 80)", "sent to 127.0.0.1:53"),
    "a file": ("open(os.environ['HOME'] + '/.ssh/id_rsa').read()", "opened"),
    "a file that is printed": (
        "print(open(os.environ['HOME'] + '/notes.txt').read())",
        "printed a canary",
    ),
    "a written file": ("open(os.environ['HOME'] + '/../outside/new.txt', 'w')", "wrote"),
    "a program": (
        "subprocess.run(['canary-program'], stdin=subprocess.DEVNULL)",
        "started program-canary-program",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CALLS)
def test_the_trap_sees(machine: TrapMachine, name: str) -> None:
    call, expected = CALLS[name]
    if machine.mode != "machine" and "sent" in expected:
        pytest.skip(machine.mode)
    text = f"import contextlib, os, socket, subprocess, urllib.request\nwith contextlib.suppress(OSError): {call}"
    project = machine.project(name.replace(" ", "-"))
    outcome = machine.run(project, "-I", "-c", text, program="python")
    assert outcome.code == 0, outcome.err
    assert any(escape.startswith(expected) for escape in outcome.escapes), outcome


@pytest.mark.sampled(16)
def test_the_trap_is_silent_where_nothing_leaves(machine: TrapMachine) -> None:
    outcome = machine.run(
        machine.project("silent"), "run", "text.profile", "-p", "text=Some words here."
    )
    assert outcome.code == 0, outcome.err
    assert outcome.assert_nothing_left().json
    assert machine.leaks(machine.root / "projects/silent") == []
