"""Foreign bytes and foreign code are kept apart: real escapes, tried from inside a snippet, a function in a sandbox and
a parser (docs/reference/service.md#isolation)."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import wall_attacks
from support import refused_calls
from support.project import COGCLI, Project

from cogcli.base.wall.confined_call import wall_state

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(4),
    pytest.mark.skipif(wall_state().wall is None, reason="this machine has no wall"),
]

ATTACKS = Path(wall_attacks.__file__)
MACHINES = {
    "all": (),
    "without name spaces": (refused_calls.UNSHARE,),
    "without Landlock": refused_calls.LANDLOCK,
}
NO_WALL = (refused_calls.UNSHARE, *refused_calls.LANDLOCK)
SNIPPET = """
import json, sys
from cogcli.official.snippet import execute
from pathlib import Path
target = json.loads(sys.argv[1])
code = Path(sys.argv[2]).read_text().partition('if __name__')[0]
code += f"import json\\nprint(json.dumps(attempts({target!r})))"
found = execute(code, "python")
print(found["stdout"] or found)
"""
OTHER = """
import ctypes, time
buffer = ctypes.create_string_buffer(b"a secret")
print(ctypes.addressof(buffer), flush=True)
time.sleep(300)
"""
PARSER = """
import json, sys
sys.path.append(sys.argv[2])
from cogcli.sdk import ProcessLimits, call_confined
limits = ProcessLimits(1000, 512 * 1024**2, 20, 10**6)
print(json.dumps(call_confined("wall_attacks:run", limits, {"target": json.loads(sys.argv[1])})["found"]))
"""


def command_on(machine: tuple[int, ...], *command: str) -> list[str]:
    """A command on a machine that refuses these system calls."""
    if not machine:
        return list(command)
    return [sys.executable, refused_calls.__file__, ",".join(map(str, machine)), *command]


@pytest.fixture
def project(project: Project) -> Project:
    """A project with a function in a sandbox."""
    project.services(ATTACKS.read_text(encoding="utf-8"))
    service = "id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: sandbox\n"
    service += "metadata: {timeout_seconds: 20}\n"
    project.write("services/local/demo.yaml", service)
    inputs, outputs = (
        "{target: {type: object, required: true}}",
        "{found: {type: object, required: true}}",
    )
    request, response = "{target: input.target}", "{found: response.found}"
    project.capability(
        "demo.wall.try", "run", inputs=inputs, outputs=outputs, request=request, response=response
    )
    project.capability(
        "demo.wall.spend", "spend", inputs="{what: {type: string, required: true}}", outputs=outputs,
        request="{what: input.what}", response=response,
    )  # fmt: skip
    found = "{found: {type: object, required: true}}"
    step = "- {id: try, uses: USES, input: {NAME: inputs.NAME}, output: {found: outputs.found}}"
    for skill, uses, name in (
        ("demo.try", "demo.wall.try", "target"),
        ("demo.spend", "demo.wall.spend", "what"),
    ):
        kind = "object" if name == "target" else "string"
        text = step.replace("USES", uses).replace("NAME", name)
        project.skill(
            skill, text, inputs=f"{{{name}: {{type: {kind}, required: true}}}}", outputs=found
        )
    return project


@pytest.fixture
def target(project: Project) -> Iterator[dict[str, Any]]:
    """What the attempts aim at: files, sockets, a key, shared memory and a descriptor of this process."""
    secret = secrets.token_hex(16)
    victim = project.home / "victim"
    victim.write_text(secret)
    hidden = project.write(".env", secret)
    with ExitStack() as stack:
        # A process of the same user; this one must not be stopped by an attempt that works.
        other = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", OTHER],
                env={"SECRET": secret},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(other.kill)
        assert other.stdout is not None
        address = int(other.stdout.readline())
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        names = {}
        for name, kind in (("abstract", socket.SOCK_STREAM), ("datagram", socket.SOCK_DGRAM)):
            own = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            names[name] = f"cogcli-{name}-{secret}"
            own.bind("\0" + names[name])
            if kind == socket.SOCK_STREAM:
                own.listen()
        marker = project.home / "marker"
        marker.write_text(secret)
        descriptor = stack.enter_context(open(marker, "rb"))
        os.set_inheritable(descriptor.fileno(), True)
        key = f"cogcli-{secret}"
        libc = ctypes.CDLL(None, use_errno=True)
        numbers = wall_attacks.NUMBERS
        add_key = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
        libc.syscall(add_key, b"user", key.encode(), b"the key", 7, ctypes.c_long(-3))
        shm = secrets.randbelow(2**30)
        shared = libc.syscall(
            numbers["shmget"], ctypes.c_long(shm), ctypes.c_long(4096), ctypes.c_long(0o1666)
        )
        yield {
            "secret": secret, "victim": f"at:{victim}", "home": f"at:{project.home}", "hidden": f"at:{hidden}",
            "pid": other.pid, "address": address, "port": server.getsockname()[1],
            "key": key, "marker": secret, "shm": shm, **names,
        }  # fmt: skip
        libc.shmctl(shared, 0, None)
        victim.unlink(missing_ok=True)


def run_as(
    kind: str, machine: tuple[int, ...], project: Project, target: dict[str, Any]
) -> dict[str, str]:
    """What the attempts got inside a snippet, a function in a sandbox or a parser."""
    environ = {**project.env, "SECRET": target["secret"]}
    if kind == "sandbox":
        command = [COGCLI, "run", "demo.try", "--input", json.dumps({"target": target}), "--json"]
    elif kind == "snippet":
        command = [sys.executable, "-c", SNIPPET, json.dumps(target), str(ATTACKS)]
    else:
        command = [sys.executable, "-c", PARSER, json.dumps(target), str(ATTACKS.parent)]
    done = subprocess.run(
        command_on(machine, *command), cwd=project.root, env=environ, capture_output=True, text=True, check=False,
        close_fds=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    return dict(found["outputs"]["found"] if kind == "sandbox" else found)


def test_the_attempts_work_without_a_wall(project: Project, target: dict[str, Any]) -> None:
    """Otherwise the tests below would show nothing. Some need rights or devices that a machine may lack."""
    done = subprocess.run(
        [sys.executable, str(ATTACKS), json.dumps(target)], capture_output=True, text=True, check=True,
        env={**project.env, "SECRET": target["secret"]}, close_fds=False,
    )  # fmt: skip
    got = {name for name, result in json.loads(done.stdout).items() if result.startswith("got: ")}
    assert got >= {
        "/etc/passwd", "a file of the user", "the folder of the user", "a hidden file of the root", "a variable",
        "own environ", "environ of the parent", "loopback", "abstract socket", "datagram pair", "fork", "program",
        "write in the home", "overwrite", "write in /tmp", "truncate", "open to empty", "chmod", "times", "link",
        "remove", "descriptors", "signal", "owned signals", "shared memory", "limits of the parent", "pidfd_open",
        "session key",
    }  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", ["snippet", "sandbox", "parser"])
def test_nothing_gets_out(
    kind: str, machine: str, project: Project, target: dict[str, Any]
) -> None:
    found = run_as(kind, MACHINES[machine], project, target)
    assert found.keys() == wall_attacks.ATTEMPTS.keys()
    assert {
        name: result for name, result in found.items() if not result.startswith("blocked: ")
    } == {}
    assert (project.home / "victim").read_text() == target["secret"]
    assert not (project.home / "new").exists()


UNPRIVILEGED = """
import ctypes, json, os, socket, sys
sys.path.append(sys.argv[2])
import wall_attacks
from cogcli.base.wall.enter import enter
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as after the start of a program: its own files in /proc are its own
wall = enter(["/usr"])
found = wall_attacks.attempts(json.loads(sys.argv[1]))
os.write(1, json.dumps([wall.text, found]).encode())
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", MACHINES)
def test_an_unprivileged_user_has_a_wall(
    machine: str, project: Project, target: dict[str, Any]
) -> None:
    """It is entered without starting Python again, which that user may not be able to read."""
    command = [sys.executable, "-c", UNPRIVILEGED, json.dumps(target), str(ATTACKS.parent)]
    done = subprocess.run(
        command_on(MACHINES[machine], *command), env={**project.env, "SECRET": target["secret"]},
        capture_output=True, text=True, check=False, close_fds=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text, found = json.loads(done.stdout)
    assert ("Landlock" in text) == (machine != "without Landlock")
    assert ("name spaces" in text) == (machine != "without name spaces")
    assert {
        name: result for name, result in found.items() if not result.startswith("blocked: ")
    } == {}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("what", "code"),
    [("memory", "call.server-error"), ("output", "response.size"), ("time", "call.timeout")],
)
def test_a_function_in_a_sandbox_spends_no_more_than_it_may(
    project: Project, what: str, code: str
) -> None:
    service = project.root / "services/local/demo.yaml"
    service.write_text(
        service.read_text().replace("20", "2") if what == "time" else service.read_text()
    )
    done = project.run("run", "demo.spend", "-p", f"what={what}", "--json")
    assert done.code == (6 if what == "time" else 1)
    assert done.json["error"]["code"] == code
    assert project.run("verify", "@last").code == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("what", "seconds"), [("memory", 20), ("output", 20), ("time", 1)])
def test_a_parser_spends_no_more_than_it_may(
    what: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cogcli.sdk import ProcessLimits, Refused, call_confined

    monkeypatch.syspath_prepend(str(ATTACKS.parent))
    limits = ProcessLimits(0, 1024**3, seconds, 10**6)
    with pytest.raises(Refused) as refused:
        call_confined("wall_attacks:spend", limits, {"what": what})
    assert refused.value.reason == "too-large"


def _nested_parts(depth: int) -> bytes:
    heads = [
        f'Content-Type: multipart/mixed; boundary="b{n}"\r\n\r\n--b{n}\r\n' for n in range(depth)
    ]
    tails = [f"\r\n--b{n}--\r\n" for n in reversed(range(depth))]
    return ("From: a@example.org\r\n" + "".join(heads) + "\r\nhello" + "".join(tails)).encode()


BOMBS = {
    "encoded words": b"From: "
    + b"=?utf-8?q?=41?= " * 17_500
    + b"<a@b.example>\r\nSubject: x\r\n\r\nhello",
    "nested parts": _nested_parts(4_000),
    "nested messages": b"From: a@b.example\r\n"
    + b"Content-Type: message/rfc822\r\n\r\nFrom: a@b.example\r\n" * 5_500
    + b"\r\nhello",
    "comments": b"From: " + b"(" * 280_000 + b" <a@b.example>\r\nSubject: x\r\n\r\nhello",
    "elements": b"From: a@b.example\r\nContent-Type: text/html\r\n\r\n" + b"<b>" * 93_000,
}
PEAK = """
import json, resource, sys
from cogcli.official.email import read_mailbox
from cogcli.sdk import Refused
try:
    found = read_mailbox(sys.argv[1])
    ended = "skipped" if found["skipped"] else "read"
except Refused as refused:
    ended = refused.reason
# The peak of `getrusage` counts what the process that started this one had used.
(line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
children = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"ended": ended, "own": int(line.split()[1]) * 1024, "children": children.ru_maxrss * 1024}))
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_message_that_explodes_stays_within_its_memory(bomb: str, ordinary_path: Path) -> None:
    from cogcli.official.confined import LIMITS

    message = ordinary_path / "bomb.eml"
    message.write_bytes(BOMBS[bomb])
    assert message.stat().st_size < 300_000
    command = [sys.executable, "-c", PEAK, str(message)]
    done = subprocess.run(command, cwd=ordinary_path, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["ended"] == ("read" if bomb == "elements" else "skipped")
    assert found["own"] < 100 * 1024**2
    assert found["children"] <= LIMITS["email:messages_of_file"].memory_bytes


LONG_HEADERS = {
    "comments": b"To: " + b"(a)" * 93_000 + b" <a@b.example>",
    "dots": b"Cc: " + b"a." * 140_000 + b"b <a@b.example>",
    "comments of many headers": b"\r\n".join([b"To: " + b"(a)" * 500] * 180),
    "parameters": b"Content-Type: text/plain; " + b"a=b; " * 56_000,
    "folded parameters": b"Content-Type: text/plain;" + b"\r\n a=b;" * 40_000,
    "an identifier": b"Message-ID: <" + b"a." * 140_000 + b"@b>",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bomb", LONG_HEADERS)
def test_a_message_with_slow_headers_does_not_take_the_mailbox_along(
    bomb: str, ordinary_path: Path
) -> None:
    from cogcli.official.email import read_mailbox

    slow = b"From: a@b.example\r\n" + LONG_HEADERS[bomb] + b"\r\n\r\nslow\r\n\r\n"
    plain = b"From: a@b.example\r\nSubject: plain\r\n\r\nhello\r\n\r\n"
    envelope = b"From a@b.example Mon Jun  1 10:00:00 2026\r\n"
    (ordinary_path / "in.mbox").write_bytes(
        b"".join(envelope + each for each in (plain, slow, plain))
    )
    found = read_mailbox(str(ordinary_path / "in.mbox"))
    assert [each["text"] for each in found["messages"]] == ["hello", "hello"]
    assert found["skipped"] == 1


def test_a_long_list_of_receivers_is_read_whole(ordinary_path: Path) -> None:
    from cogcli.official.email import read_mailbox

    pair = '"Ex, Ann {0}" <ann{0}@b.example>,\r\n =?utf-8?q?=C3=A9_{0}?= <e{0}@b.example>'
    receivers = ",\r\n ".join(pair.format(number) for number in range(500))
    (ordinary_path / "in.eml").write_text(f"From: a@b.example\r\nTo: {receivers}\r\n\r\nhello")
    (message,) = read_mailbox(str(ordinary_path / "in.eml"))["messages"]
    assert [len(message["to"]), *message["to"][-2:]] == [
        1000,
        {"name": "Ex, Ann 499", "address": "ann499@b.example"},
        {"name": "é 499", "address": "e499@b.example"},
    ]


MAILBOX_BOMB = b"From a@b.example 10:00\nFrom: a@b.example\n\n" + b"\nx" * 30_000_000


@pytest.mark.sampled(4)
def test_a_mailbox_that_explodes_leaves_a_whole_log(project: Project, ordinary_path: Path) -> None:
    bomb = ordinary_path / "bomb.eml"
    bomb.write_bytes(MAILBOX_BOMB)
    step = "- {id: mail, uses: email.inbox.read, input: {mailbox: inputs.path}, output: {messages: outputs.found}}"
    outputs = "{found: {type: array, required: true}}"
    project.skill(
        "demo.mail", step, inputs="{path: {type: string, required: true}}", outputs=outputs
    )
    done = project.run("run", "demo.mail", "-p", f"path={bomb}", "--json").assert_exit(1)
    assert done.json["error"]["code"] == "call.rejected"
    assert done.json["error"]["reason"] == "too-large"
    assert project.run("verify", "@last").code == 0


def on_machine_without_wall(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed command where the kernel refuses Landlock and name spaces."""
    command = command_on(NO_WALL, COGCLI, *arguments)
    return subprocess.run(
        command, cwd=project.root, env=project.env, capture_output=True, text=True, check=False
    )


@pytest.mark.sampled(8)
def test_without_a_wall_what_needs_one_is_not_eligible_and_says_why(project: Project) -> None:
    step = (
        "- {id: run, uses: code.snippet.execute, input: {code: inputs.code, language: python},"
        " output: {stdout: outputs.found}}"
    )
    project.skill(
        "demo.code", step, inputs="{code: {type: string, required: true}}",
        outputs="{found: {type: string, required: true}}",
    )  # fmt: skip
    runs = {
        "demo.spend": ("-p", "what=nothing"),
        "demo.code": (
            "-p", "code=print(1)", "--trust-level", "privileged", "--confirm", "code.snippet.execute",
        ),
    }  # fmt: skip
    for skill, flags in runs.items():
        done = on_machine_without_wall(project, "run", skill, *flags, "--json")
        assert done.returncode == 3, done.stderr
        error = json.loads(done.stdout)["error"]
        assert error["code"] == "binding.ineligible"
        assert "this machine has no wall" in error["message"]
        assert "Landlock: the kernel does not have it" in error["message"]
        assert "name spaces: Function not implemented" in error["message"]
        assert "cogcli doctor" in error["hint"]
    assert not project.episodes
    project.run("run", "demo.spend", "-p", "what=nothing").assert_ok()


@pytest.mark.sampled(8)
def test_without_a_wall_doctor_says_so_and_parsers_keep_their_limits(
    project: Project, ordinary_path: Path
) -> None:
    done = on_machine_without_wall(project, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["wall"]["status"] == "warning"
    assert checks["wall"]["message"] == "no wall is in force"
    assert "Landlock" in checks["wall"]["details"][0]
    bomb = ordinary_path / "bomb.eml"
    bomb.write_bytes(MAILBOX_BOMB)
    step = "- {id: mail, uses: email.inbox.read, input: {mailbox: inputs.path}, output: {messages: outputs.found}}"
    outputs = "{found: {type: array, required: true}}"
    project.skill(
        "demo.mail", step, inputs="{path: {type: string, required: true}}", outputs=outputs
    )
    done = on_machine_without_wall(project, "run", "demo.mail", "-p", f"path={bomb}", "--json")
    assert json.loads(done.stdout)["error"]["reason"] == "too-large"


def test_a_function_in_a_sandbox_reads_the_files_that_its_input_names(project: Project) -> None:
    project.services(
        """
        from helpers.reading import first_line

        def read(path: str) -> dict[str, object]:
            return {"text": first_line(path)}
        """
    )
    project.write(
        "services/local/demo.yaml",
        "id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: sandbox\n",
    )
    project.write("helpers/__init__.py", "")
    project.write("helpers/reading.py", "def first_line(path):\n    return open(path).readline()\n")
    project.capability(
        "demo.file.read",
        "read",
        inputs="{path: {type: string, required: true}}",
        request="{path: input.path}",
    )
    step = "- {id: read, uses: demo.file.read, input: {path: inputs.path}, output: {text: outputs.text}}"
    text = "{text: {type: string, required: true}}"
    project.skill("demo.read", step, inputs="{path: {type: string, required: true}}", outputs=text)
    (project.home / "named.txt").write_text("named\n")
    for path in (str(project.home / "named.txt"), "../home/named.txt"):
        done = project.run("run", "demo.read", "-p", f"path={path}", "--json").assert_ok()
        assert done.json["outputs"]["text"] == "named\n"


def test_a_function_in_a_sandbox_reads_no_hidden_name_and_no_credentials_that_were_not_typed(
    project: Project,
) -> None:
    project.services(
        """
        import os

        def read(path: str) -> dict[str, object]:
            found = []
            for name in ("part/seen.txt", "part/.env", "part/inner/.git/config", "part/link", path):
                try:
                    found.append(open(os.path.join(os.path.dirname(__file__), name)).read())
                except OSError:
                    found.append("")
            return {"text": " ".join(found)}
        """
    )
    project.write(
        "services/local/demo.yaml",
        "id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: sandbox\n",
    )
    for name in ("seen.txt", ".env", "inner/.git/config"):
        project.write(f"part/{name}", name)
    key = project.home / ".ssh/id_rsa"
    key.parent.mkdir()
    key.write_text("key")
    (project.root / "part/link").symlink_to(key)
    project.capability(
        "demo.file.read",
        "read",
        inputs="{path: {type: string, required: true}}",
        request="{path: input.path}",
    )
    step = "- {id: read, uses: demo.file.read, input: {path: inputs.path}, output: {text: outputs.text}}"
    inputs = "{path: {type: string, required: true}}"
    project.skill(
        "demo.read", step, inputs=inputs, outputs="{text: {type: string, required: true}}"
    )
    project.write("inputs.json", json.dumps({"path": str(key)}))
    done = project.run("run", "demo.read", "-p", f"path={key}", "--json").assert_ok()
    assert done.json["outputs"]["text"] == "seen.txt    key"
    project.run("run", "demo.read", "--input-file", "inputs.json").assert_exit(4)


def test_the_documents_state_the_limits_of_each_parser() -> None:
    """The table of the reference has a row per parser, in the same order, with the limits of the code."""
    from cogcli.official.confined import LIMITS, RUFF

    page = (Path(__file__).parents[2] / "docs/reference/service.md").read_text(encoding="utf-8")
    part = page.partition('<a id="parsers"></a>')[2].partition("<a id=")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in part.splitlines()
        if line.startswith("|")
    ]
    found = [(row[3], int(row[4]), row[5]) for row in rows[2:]]
    shown = [
        (_size(each.memory_bytes), each.seconds, _size(each.output_bytes))
        for name, each in [*LIMITS.items(), ("ruff", RUFF)]
        if name != "email:messages_of_folder"
    ]
    assert found == shown


def _size(number: int) -> str:
    for unit, name in ((1024**3, "GiB"), (1024**2, "MiB")):
        if number % unit == 0:
            return f"{number // unit} {name}"
    return f"{number // 1024} KiB"
