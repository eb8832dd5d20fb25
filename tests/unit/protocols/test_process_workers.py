"""pythoncall in a worker process (docs/reference/protocols.md#worker)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.processes import children, descriptors, is_gone, is_there
from fakes.surroundings import surroundings
from support.waiting import wait_until

from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase, TransportError
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.protocols.invoker import CallLimits, InvocationRequest
from cogcli.protocols.pythoncall.invoker import PythonCall
from cogcli.protocols.pythoncall.stdout_capture import CAP
from cogcli.protocols.pythoncall.worker_main import to_frame

pytestmark = [pytest.mark.slow, pytest.mark.sampled(4)]

SOURCE = """
import os, resource, subprocess, sys, threading, time

def me():
    return {"pid": os.getpid(), "guard": os.getppid(), "session": os.getsid(0), "group": os.getpgid(0),
            "isolated": sys.flags.isolated, "environment": dict(os.environ), "path": sys.path, "cwd": os.getcwd(),
            "limits": [resource.getrlimit(n)[0] for n in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE,
                                                          resource.RLIMIT_CORE)]}

def meets(folder, number, others):
    open(os.path.join(folder, str(number)), "w").close()
    late = time.monotonic() + 60
    while len(os.listdir(folder)) < others and time.monotonic() < late:
        time.sleep(0.005)
    return {"pid": os.getpid()}

def told(file, forever=True):
    child = subprocess.Popen(["sleep", "600"])
    with open(file + ".new", "w") as out:
        out.write(f"{os.getpid()} {child.pid} {os.getppid()}")
    os.rename(file + ".new", file)
    while forever:
        pass
    return {}

def hogs(file):
    told(file, forever=False)
    sum(range(10**15))  # one call into C that never gives the interpreter back

def stops_its_guard(file):
    os.kill(os.getppid(), 19)
    told(file)

def exits(status):
    print("last words")
    sys.stdout.flush()
    os._exit(status)

def crashes():
    os.kill(os.getpid(), 11)

def exits_later():
    threading.Thread(target=lambda: (time.sleep(0.02), os._exit(1))).start()
    return {}

def allocates():
    return {"size": len(bytearray(8 * 1024**3))}

def opens():
    return {"files": len([open(os.devnull) for _ in range(300)])}

def prints(characters):
    sys.stderr.write("\\x1b[31m" + "e" * characters)
    sys.stdout.write("o" * characters)
    os.write(1, b"raw")
    subprocess.run(["echo", "by a child"], check=True)
    sys.stdout.flush()
    return {"done": True}

def writes(data):
    for fd in range(3, 256):
        try:
            os.write(fd, bytes.fromhex(data))
        except OSError:
            pass
    return {"done": True}
"""


class Caller:
    """Calls the functions of one module through one invoker."""

    def __init__(
        self, root: Path, *, environ: dict[str, str] | None = None, max_workers: int = 8
    ) -> None:
        self.root = root
        self.invoker = PythonCall(surroundings(environ, max_workers=max_workers))

    def __call__(
        self, operation: str, *, limit: float = 30.0, cancel: Cancellation | None = None,
        module: str = "called", trusted: bool = True, **payload: Any,
    ) -> Any:  # fmt: skip
        service = Service(
            id="svc", kind="pythoncall", module=module, root=str(self.root), trusted=trusted
        )
        binding = Binding(
            id="b",
            capability="c.a",
            service="svc",
            protocol="pythoncall",
            operation=operation,
            request={},
            response={},
        )
        request = InvocationRequest(
            service, binding, operation, payload, "none", "k", "c.a", "run_1", "s", 1
        )
        context = CallLimits(time.monotonic() + limit, cancel or Cancellation())
        return self.invoker.invoke(request, context).body

    def refused(self, operation: str, **keys: Any) -> RuntimeErrorBase:
        with pytest.raises(RuntimeErrorBase) as caught:
            self(operation, **keys)
        return caught.value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "called.py").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def call(root: Path) -> Iterator[Caller]:
    caller = Caller(root)
    yield caller
    caller.invoker.close(1.0)


def pids_in(file: Path) -> list[int]:
    """What `told` wrote once it was called."""
    wait_until(file.exists)
    return [int(pid) for pid in file.read_text().split()]


# -- what it is -------------------------------------------------------------------------------------------------------


def test_it_is_isolated_and_has_a_session_of_its_own(call: Caller) -> None:
    me = call("me")
    assert me["isolated"] == 1
    assert me["session"] == me["group"] == me["pid"]
    assert me["pid"] != os.getpid()
    assert me["guard"] in children()


def test_it_sees_no_variable_beyond_the_list(root: Path) -> None:
    given = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/x",
        "TZ": "UTC",
        "TOKEN": "secret",
        "PYTHONPATH": str(root),
    }
    call = Caller(root, environ=given)
    seen = call("me")["environment"]
    call.invoker.close(1.0)
    seen.pop("LC_CTYPE", None)  # Python sets it where no language is given
    assert seen == {name: given[name] for name in ("PATH", "HOME", "TZ")}


def test_memory_files_and_core_size_are_limited(call: Caller) -> None:
    assert call("me")["limits"] == [2 * 1024**3, 256, 0]
    error = call.refused("allocates")
    assert error.code == "call.server-error"
    assert error.message.startswith("MemoryError (at called.py:")
    assert "Too many open files" in call.refused("opens").message


def test_nothing_is_imported_from_the_working_directory(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path_factory.mktemp("here")
    for name in ("json", "ctypes", "resource", "called", "contextlib", "sitecustomize"):
        (here / f"{name}.py").write_text(f"open({str(here / 'mark')!r}, 'w')\n")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    call = Caller(root)
    me = call("me")
    call.invoker.close(1.0)
    assert (me["cwd"], str(here) in me["path"], "" in me["path"]) == (str(here), False, False)
    assert not (here / "mark").exists()


def test_what_may_not_be_imported_starts_no_process(call: Caller) -> None:
    before = children()
    assert call.refused("me", trusted=False).code == "service.untrusted"
    assert call.refused("system", module="os").code == "service.forbidden"
    assert children() == before


# -- how long it lives ------------------------------------------------------------------------------------------------


def test_it_is_kept_for_the_next_call(call: Caller) -> None:
    assert len({call("me")["pid"] for _ in range(3)}) == 1


def test_calls_at_the_same_time_have_a_worker_each(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "met").mkdir()
    assert len(set(at_once(call, tmp_path / "met", 3, others=3))) == 3


def test_there_are_never_more_workers_than_allowed(root: Path, tmp_path: Path) -> None:
    call = Caller(root, max_workers=2)
    (tmp_path / "met").mkdir()
    before = children()
    assert len(set(at_once(call, tmp_path / "met", 6, others=1))) <= 2
    assert len(children() - before) <= 2
    call.invoker.close(1.0)


def at_once(call: Caller, folder: Path, calls: int, *, others: int) -> list[int]:
    pids = []
    threads = [
        threading.Thread(
            target=lambda n=n: pids.append(
                call("meets", folder=str(folder), number=n, others=others)["pid"]
            )
        )
        for n in range(calls)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == calls
    return pids


def test_another_service_gets_the_place_of_an_idle_worker(root: Path) -> None:
    (root / "other.py").write_text("import os\ndef me(): return {'pid': os.getpid()}\n")
    call = Caller(root, max_workers=1)
    first = call("me")["pid"]
    assert call("me", module="other")["pid"] != first
    assert is_gone(first)
    call.invoker.close(1.0)


def test_whoever_finds_no_free_worker_in_time_is_told_that_nothing_left(
    root: Path, tmp_path: Path
) -> None:
    call = Caller(root, max_workers=1)
    cancel = Cancellation()
    thread = threading.Thread(
        target=lambda: call.refused("told", file=str(tmp_path / "pids"), cancel=cancel)
    )
    thread.start()
    pids_in(tmp_path / "pids")
    error = call.refused("me", limit=0.05)
    assert (error.code, error.left) == ("call.timeout", False)
    cancel.set()
    thread.join()
    assert call("me")["pid"]
    call.invoker.close(1.0)


# -- how it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(16)
@pytest.mark.slow
def test_at_the_deadline_it_is_killed_with_its_group(call: Caller, tmp_path: Path) -> None:
    call("me")  # a worker that runs begins the next call at once
    errors = []
    thread = threading.Thread(
        target=lambda: errors.append(call.refused("told", file=str(tmp_path / "pids"), limit=3))
    )
    thread.start()
    pids = pids_in(tmp_path / "pids")
    thread.join()
    assert [(error.code, error.left) for error in errors] == [("call.timeout", True)]
    assert all(is_gone(pid) for pid in pids)
    assert call("me")["pid"] not in pids


@pytest.mark.parametrize("operation", ["told", "hogs"])
def test_a_call_given_up_is_killed_with_its_group(
    call: Caller, tmp_path: Path, operation: str
) -> None:
    cancel = Cancellation()
    thread = threading.Thread(
        target=lambda: call.refused(operation, file=str(tmp_path / "pids"), cancel=cancel)
    )
    thread.start()
    pids = pids_in(tmp_path / "pids")
    cancel.set()
    thread.join()
    assert all(is_gone(pid) for pid in pids)


def test_a_call_given_up_before_it_began_starts_nothing(call: Caller) -> None:
    cancel, before = Cancellation(), children()
    cancel.set()
    assert call.refused("me", cancel=cancel).left is False
    assert children() == before


def test_the_end_of_the_run_leaves_no_process_and_no_file(call: Caller, tmp_path: Path) -> None:
    before = children(), descriptors()
    idle = call("me")["pid"]
    errors = []
    thread = threading.Thread(
        target=lambda: errors.append(call.refused("told", file=str(tmp_path / "pids")))
    )
    thread.start()
    pids = pids_in(tmp_path / "pids")
    call.invoker.close(1.0)
    call.invoker.close(1.0)
    thread.join()
    assert all(is_gone(pid) for pid in (idle, *pids))
    assert (children(), descriptors()) == before
    assert [(error.code, error.left) for error in errors] == [("call.transport", True)]
    assert call.refused("me").left is False


def test_one_whose_guard_was_stopped_is_killed_all_the_same(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogcli.protocols.pythoncall.worker_process.ENDING_SECONDS", 0.05)
    cancel = Cancellation()
    thread = threading.Thread(
        target=lambda: call.refused("stops_its_guard", file=str(tmp_path / "pids"), cancel=cancel)
    )
    thread.start()
    worker, child, guard = pids_in(tmp_path / "pids")
    cancel.set()
    thread.join()
    assert is_gone(worker)
    assert is_gone(guard)
    os.kill(child, signal.SIGKILL)


PARENT = """
import os, sys, threading, time
sys.path[:0] = [{tests!r}, {here!r}]
from test_process_workers import Caller, pids_in
from pathlib import Path
call = Caller(Path({root!r}))
threading.Thread(target=lambda: call("hogs", file={file!r}), daemon=True).start()
pids_in(Path({file!r}))
os.kill(os.getpid(), {number})
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_it_does_not_outlive_us(root: Path, tmp_path: Path, number: int) -> None:
    file = str(tmp_path / "pids")
    here = Path(__file__).parent
    source = PARENT.format(
        root=str(root), file=file, here=str(here), tests=str(here.parents[1]), number=int(number)
    )
    done = subprocess.run([sys.executable, "-c", source], check=False, timeout=60)
    assert done.returncode == -number
    assert all(is_gone(pid) for pid in pids_in(Path(file)))


@pytest.mark.parametrize(
    ("operation", "payload", "words"),
    [
        ("exits", {"status": 3}, "the worker of service `svc` ended with status 3: last words"),
        ("crashes", {}, "the worker of service `svc` was killed by SIGSEGV"),
    ],
)
def test_one_that_dies_is_told_and_replaced(
    call: Caller, operation: str, payload: dict[str, Any], words: str
) -> None:
    before = call("me")["pid"]
    error = call.refused(operation, **payload)
    assert (error.code, error.left, error.message) == ("call.transport", True, words)
    assert not is_there(before)
    assert call("me")["pid"] != before


def test_one_that_dies_while_importing_was_never_entered(root: Path) -> None:
    (root / "dies.py").write_text("import os\nos._exit(4)\ndef f(): return {}\n")
    call = Caller(root)
    error = call.refused("f", module="dies")
    assert (error.code, error.left) == ("call.transport", False)
    call.invoker.close(1.0)


def test_one_that_died_between_two_calls_is_not_used(call: Caller) -> None:
    before = call("me")["pid"]
    call("exits_later")
    assert is_gone(before)
    assert call("me")["pid"] != before


def test_one_that_cannot_be_started_is_told(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    error = call.refused("me")
    assert (error.code, error.left) == ("call.transport", False)
    assert "cannot be started" in error.message
    assert descriptors() == before


# -- what it says -----------------------------------------------------------------------------------------------------


def test_nothing_it_prints_reaches_our_streams(
    call: Caller, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call("prints", characters=50 * CAP) == {"done": True}
    assert call("prints", characters=3) == {"done": True}
    assert capfd.readouterr() == ("", "")


def test_what_a_function_prints_is_told_of_its_own_call(root: Path) -> None:
    (root / "talks.py").write_text(
        "import os\ndef f(text):\n    print(text)\n    os.write(2, b'raw ')\n    return {'n': 1 // len(text)}\n"
        "def dies():\n    print('last', flush=True)\n    os._exit(3)\n"
    )
    call = Caller(root)
    service = Service(id="svc", kind="pythoncall", module="talks", root=str(root), trusted=True)

    def meta(operation: str, **payload: Any) -> Any:
        binding = Binding(
            id="b",
            capability="c.a",
            service="svc",
            protocol="pythoncall",
            operation=operation,
            request={},
            response={},
        )
        request = InvocationRequest(
            service, binding, operation, payload, "none", "k", "c.a", "run_1", "s", 1
        )
        try:
            return call.invoker.invoke(
                request, CallLimits(time.monotonic() + 30, Cancellation())
            ).meta.printed
        except RuntimeErrorBase as error:
            return (error.record or {})["printed"], error.message

    assert meta("f", text="one") == "raw one\n"
    assert meta("f", text="two") == "raw two\n"
    assert meta("f", text="") == (
        "raw \n",
        "ZeroDivisionError: integer division or modulo by zero (at talks.py:5)",
    )
    printed, message = meta("dies")
    assert printed == "last\n"
    assert "last" in message
    call.invoker.close(1.0)


def test_it_sends_arguments_and_replies_larger_than_any_buffer(root: Path) -> None:
    (root / "echo.py").write_text("def f(text): return {'text': text}\n")
    call = Caller(root)
    text = "ä" * 1_500_000
    assert call("f", module="echo", text=text) == {"text": text}
    call.invoker.close(1.0)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        to_frame(b"[]"),
        to_frame(b"{}"),
        to_frame(b'{"n":1}'),
        to_frame(b'{"n":2,"entered":true}'),
        to_frame(b'{"n":1,"error":"oops"}'),
        to_frame(b'{"n":1,"error":{"code":5,"message":"","hint":"","reason":""}}'),
        to_frame(b'{"n":1,"error":{"code":"internal","message":"","hint":"","reason":1}}'),
        to_frame(b'{"n":true,"reply":true}') + to_frame(b"{}"),
        to_frame(b'{"n":1.0,"reply":true}') + to_frame(b"{}"),
        to_frame(b'{"n":1,"reply":true}') + to_frame(b"[1]"),
        to_frame(b'{"n":1,"reply":true}') + to_frame(b'{"a":NaN}'),
        to_frame(b'{"n":1,"n":1,"reply":true}') + to_frame(b"{}"),
        to_frame(b"not json"),
    ],
)
def test_what_is_no_answer_ends_the_worker_and_nothing_else(call: Caller, data: bytes) -> None:
    error = call.refused("writes", data=data.hex())
    assert (error.code, error.left) == ("call.transport", True)
    assert call("me")["pid"]


def test_a_code_that_no_worker_may_tell_is_a_fault_of_the_function(call: Caller) -> None:
    forged = (
        b'{"n":1,"error":{"code":"safety.trust","message":"forged","hint":"run me","reason":""}}'
    )
    error = call.refused("writes", data=to_frame(forged).hex())
    assert (error.code, error.message, error.hint) == ("call.server-error", "forged", "")


def test_what_a_function_refuses_keeps_its_reason_message_and_hint(call: Caller) -> None:
    source = "from cogcli.sdk import Refused\ndef f(): raise Refused('bad-data', 'row 3 é\\ud800', 'write dates')\n"
    (call.root / "refusing.py").write_text(source)
    error = call.refused("f", module="refusing")
    assert (error.code, error.left, error.retryable) == ("call.rejected", True, False)
    assert (error.reason, error.message, error.hint) == (
        "bad-data",
        "row 3 é\\ud800",
        "write dates",
    )


def test_an_answer_too_many_is_not_taken_for_the_next_one(call: Caller) -> None:
    forged = to_frame(b'{"n":1,"reply":true}') + to_frame(b'{"forged":true}')
    assert call("writes", data=forged.hex()) == {"forged": True}
    try:
        reply = call("me")
    except TransportError:  # the true answer to the first call came just now
        reply = call("me")
    assert "pid" in reply
