"""A piece of Python behind walls: what it may, and what it cannot reach."""

from __future__ import annotations

import os
import secrets
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from cogcli.base.wall.confined_call import wall_state
from cogcli.official import snippet
from cogcli.official.snippet import execute
from cogcli.sdk import Refused

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(4),
    pytest.mark.skipif(wall_state().wall is None, reason="this machine has no wall"),
]


class Mark:
    """A name that all processes of a piece of code have, to find them by."""

    def __init__(self) -> None:
        self.name = f"s{secrets.token_hex(6)}"
        self.code = f"import ctypes\nctypes.CDLL(None).prctl(15, b'{self.name}', 0, 0, 0)\n"

    def found(self) -> list[str]:
        """The processes that there are."""
        return [
            path.parent.name
            for path in Path("/proc").glob("[0-9]*/comm")
            if self.name in _read(path)
        ]

    def wait_until_gone(self) -> bool:
        """Whether all of them end. The kernel ends them one after the other."""
        for _ in range(1000):
            if not self.found():
                return True
            time.sleep(0.01)
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def mark() -> Mark:
    return Mark()


def test_what_it_prints_comes_back() -> None:
    found = execute("import sys\nprint(1 + 1)\nprint('é', file=sys.stderr)\nsys.exit(3)", "Python")
    assert found == {
        "result": {"exit_code": 3, "timed_out": False, "truncated": False},
        "stdout": "2\n",
        "stderr": "é\n",
    }


def test_it_begins_in_an_empty_directory_with_no_variables_and_may_write_there() -> None:
    code = (
        "import os, sys, json, sqlite3, ssl\n"
        "print(os.listdir('.'), sorted(os.environ), sys.flags.isolated, sys.stdin.read() == '')\n"
        "open('a', 'w').write('x'); print(os.listdir('.'))"
    )
    assert (
        execute(code, "python")["stdout"] == "[] ['LANG', 'LC_CTYPE', 'PATH'] 1 True\n['a']\n"
        or execute(code, "python")["stdout"] == "[] ['LANG', 'PATH'] 1 True\n['a']\n"
    )


def test_a_syntax_error_has_its_line() -> None:
    found: Any = execute("x = 1\ndef f(:\n", "python")
    assert found["result"]["exit_code"] == 1
    assert "line 2" in found["stderr"]


def test_files_of_the_machine_cannot_be_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    files = [str(secret), "/etc/passwd", "/proc/self/environ", str(Path(__file__))]
    folders = [str(tmp_path), str(Path.home()), "/sys", "/home", "/"]
    code = f"""
import os
for act, paths in ((open, {files!r}), (os.listdir, {folders!r})):
    for path in paths:
        try:
            act(path)
        except OSError:
            print("no")
"""
    # A folder of the user may have nothing but the way to a Python that is installed in it.
    assert execute(code, "python")["stdout"] == "no\n" * (len(files) + len(folders))


@pytest.mark.parametrize("path", [os.__file__, "/usr/lib/new", "/new", "/etc/ld.so.cache"])
def test_nothing_outside_its_directory_is_written(path: str) -> None:
    found: Any = execute(f"open({path!r}, 'ab').write(b'x')", "python")
    assert found["result"]["exit_code"] == 1
    assert "OSError" in found["stderr"] or "PermissionError" in found["stderr"]


def test_no_network_not_even_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)"
        found: Any = execute(code, "python")
        assert "PermissionError" in found["stderr"]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_no_rights_are_left() -> None:
    code = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    code += (
        "print(libc.mount(b'none', b'/work', b'tmpfs', 0, None), libc.umount2(b'/usr/lib', 2))\n"
    )
    code += "user = os.getuid()\nfor other in {0, 1, 65534} - {user}:\n"
    code += "    try:\n        os.setuid(other)\n    except OSError:\n        print('no')\n"
    stdout = str(execute(code, "python")["stdout"])
    assert stdout.startswith("-1 -1\nno\n")
    assert set(stdout.split()) == {"-1", "no"}


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        "import signal\nfor number in range(1, 32):\n    try:\n        signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\nwhile True: pass",
    ],
    ids=["loop", "fork bomb", "deaf"],
)
def test_what_does_not_end_is_ended_and_nothing_is_left(
    code: str, mark: Mark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snippet, "_SECONDS", 2)
    found = execute(mark.code + code, "python")
    assert found["result"] == {"exit_code": None, "timed_out": True, "truncated": False}
    assert mark.wait_until_gone()


def test_it_starts_no_process(mark: Mark) -> None:
    code = "import os, time\nif os.fork():\n    os._exit(0)\nos.setsid()\ntime.sleep(100)"
    found: Any = execute(mark.code + code, "python")
    assert "PermissionError" in found["stderr"]
    assert mark.wait_until_gone()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "File too large"),
        ("x = bytearray(10 ** 9)", "MemoryError"),
        ("open('a', 'wb').write(bytes(10 ** 6))", "File too large"),
        ("import os\nfor n in range(5000): open(str(n), 'wb').write(bytes(250_000))", ""),
    ],
)
def test_output_memory_and_files_are_bounded(code: str, told: str) -> None:
    found: Any = execute(code, "python")
    assert found["result"]["exit_code"] in (1, None)
    assert told in found["stderr"]
    assert len(found["stdout"]) <= 256 * 1024
    assert found["result"]["truncated"] is (len(found["stdout"]) == 256 * 1024)


@pytest.mark.parametrize(
    ("code", "language", "reason"),
    [("1", "bash", "unsupported"), ("#" * 2_000_000, "python", "too-large")],
)
def test_other_languages_and_too_much_code_are_refused(
    code: str, language: str, reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        execute(code, language)
    assert refused.value.reason == reason
