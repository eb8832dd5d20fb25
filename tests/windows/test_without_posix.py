"""What is particular to Windows, as far as it can be shown elsewhere: no name that only POSIX has is needed, files of
Windows editors are read, what we write has `/` and `\\n`, its console and its keys are served."""

from __future__ import annotations

import ast
import ctypes
import ntpath
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cogcli import __main__ as start
from cogcli.app.settings import user_dirs
from cogcli.cli.windows_console import enable_vt_mode

pytestmark = pytest.mark.sampled(5)

PROGRAM = Path(__file__).with_name("without_posix.py")
PACKAGE = Path(user_dirs.__file__).parents[2]
COMMANDS = "\n".join(
    (
        "--version",
        "validate",
        "run text.summarize -p text=@notes.txt --json",
        "ls",
        "trace @last",
        "verify @last",
        "replay @last",
        "rerun @last -q",
        "run demo.greet -p text=hi",
        "gc --keep 0 --yes",
    )
)


def run(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None, input: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # a process of its own: it takes away what the tests need
        [sys.executable, str(PROGRAM), *arguments],
        cwd=cwd, env=env, input=input, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="on Windows every test shows it")
def test_every_module_can_be_imported_without_posix(tmp_path: Path) -> None:
    done = run("--import-all", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stdout + done.stderr


@pytest.mark.sampled(20)
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="on Windows every test shows it")
def test_skills_run_and_episodes_are_read_without_posix(demo: Any) -> None:
    demo.write("notes.txt", "Rain fell all day.\r\nThe river rose.\r\nBridges were closed.\r\n")
    done = run("--each", cwd=demo.root, env=demo.env, input=COMMANDS)
    codes = dict(line.rsplit(" -> ", 1) for line in done.stderr.splitlines() if " -> " in line)
    assert list(codes) == COMMANDS.splitlines(), done.stderr
    assert set(codes.values()) == {"0"}, done.stderr
    demo.write(
        "services/local/demo.yaml",
        "id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: process\n",
    )
    done = run("run", "demo.greet", "-p", "text=hi", cwd=demo.root, env=demo.env)
    assert done.returncode == 6
    assert "that takes `fork`, here it is `isolation: thread` that works" in done.stderr


# -- paths -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories as a Windows process finds them."""
    monkeypatch.setattr(user_dirs, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(user_dirs, "os", SimpleNamespace(path=ntpath, sep="\\"))


@pytest.mark.usefixtures("windows")
def test_directories_of_the_user_are_those_of_windows() -> None:
    environ = {
        "APPDATA": r"C:\Users\a\AppData\Roaming",
        "LOCALAPPDATA": r"C:\Users\a\AppData\Local",
    }
    assert user_dirs.config_home(environ) == r"C:\Users\a\AppData\Roaming\cogcli"
    assert (
        user_dirs.cache_home(environ)
        == user_dirs.state_home(environ)
        == r"C:\Users\a\AppData\Local\cogcli"
    )
    assert (
        user_dirs.config_home({**environ, "XDG_CONFIG_HOME": r"D:\config"}) == r"D:\config\cogcli"
    )


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (r"C:\work\skills\a\b.yaml", "skills/a/b.yaml"),
        ("C:/work/skills/a/b.yaml", "skills/a/b.yaml"),
        (r"C:\work\skills/a\b.yaml", "skills/a/b.yaml"),
        (r"C:\works\b.yaml", "C:/works/b.yaml"),
        (r"D:\b.yaml", "D:/b.yaml"),
    ],
)
def test_both_separators_are_read_and_a_slash_is_shown(path: str, shown: str) -> None:
    assert user_dirs.display_path(path, r"C:\work") == shown


@pytest.mark.parametrize("name", ["last", "@last", "last~0"])
def test_the_last_episode_has_a_name_that_powershell_leaves_alone(demo: Any, name: str) -> None:
    demo.run("run", "text.summarize", "-p", "text=A first sentence.", "-q").assert_ok()
    assert demo.run("verify", name).assert_ok()


# -- lines -------------------------------------------------------------------------------------------------------------


def _crlf(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode("utf-8-sig")


@pytest.mark.parametrize("mark", [True, False])
def test_an_error_in_a_file_of_windows_has_the_same_place(demo: Any, mark: bool) -> None:
    file = next(
        path for path in demo.root.glob("skills/**/*.yaml") if "id: demo.greet" in path.read_text()
    )
    broken = file.read_text().replace("uses: demo.text.upper", "usses: demo.text.upper")
    for data in (
        broken.encode(),
        _crlf(broken) if mark else _crlf(broken).removeprefix(b"\xef\xbb\xbf"),
    ):
        file.write_bytes(data)
        report = demo.run("validate", "--json").assert_exit(1).json
        places = [
            (each["code"], each.get("line"), each.get("column")) for each in report["problems"]
        ]
        if data == broken.encode():
            expected = places
    assert places == expected
    assert places[0][1]


def test_settings_inputs_and_requests_are_read_with_the_lines_of_windows(demo: Any) -> None:
    demo.write("cogcli.toml", _crlf("# ours\nmax_workers = 4\n"))
    assert (
        demo.run("config", "show", "max_workers", "--origin").out
        == "max_workers = 4   cogcli.toml:2\n"
    )
    demo.write("cogcli.toml", _crlf("# ours\nmax_worker = 4\n"))
    error = demo.run("run", "demo.greet", "-p", "text=hi", "--json").assert_exit(3).json["error"]
    assert (error["file"], error["line"]) == ("cogcli.toml", 2)
    (demo.root / "cogcli.toml").unlink()
    demo.write("in.json", _crlf('{\n  "text": "A first sentence."\n}\n'))
    demo.write("in.yaml", _crlf("text: A first sentence.\n"))
    for name in ("in.json", "in.yaml"):
        said = demo.run("run", "text.summarize", "--input-file", name, "--json").assert_ok().json
        assert said["outputs"]["summary"] == "A first sentence."


@pytest.mark.sampled(10)
def test_nothing_that_we_write_gets_the_line_ends_of_the_system() -> None:
    loose = [f"{file}:{line}" for file, line in _text_writes()]
    assert loose == []


def _text_writes() -> Iterator[tuple[str, int]]:
    """The calls that open a file to write text, or write one, and do not say what ends its lines."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if b"open(" not in source and b"write_text(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call):
                continue
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            modes = [each.value for each in node.args[1:2] if isinstance(each, ast.Constant)]
            text = name == "write_text" or (
                name in ("open", "fdopen")
                and any(str(mode)[:1] in "wax" and "b" not in str(mode) for mode in modes)
            )
            if text and "newline" not in {word.arg for word in node.keywords}:
                yield path.relative_to(PACKAGE).as_posix(), node.lineno


# -- screens and keys --------------------------------------------------------------------------------------------------


class Console:
    """A console as the system sees it: its modes, and whether it can be told new ones."""

    def __init__(self, modes: int | None, *, can: bool = True) -> None:
        self.modes, self.can, self.told = modes, can, 0

    def GetConsoleMode(self, handle: Any, place: Any) -> int:
        if self.modes is None:
            return 0
        ctypes.cast(place, ctypes.POINTER(ctypes.c_ulong)).contents.value = self.modes
        return 1

    def SetConsoleMode(self, handle: Any, modes: Any) -> int:
        self.told += 1
        if self.can:
            self.modes = modes.value
        return int(self.can)


@pytest.mark.parametrize(
    ("console", "shows", "modes", "told"),
    [
        (Console(3), True, 7, 1),
        (Console(7), True, 7, 0),
        (Console(3, can=False), False, 3, 1),
        (Console(None), False, None, 0),
    ],
)
def test_a_console_is_told_to_read_codes_or_gets_none(
    console: Console, shows: bool, modes: int | None, told: int
) -> None:
    assert (enable_vt_mode(console, None), console.modes, console.told) == (shows, modes, told)


@pytest.mark.parametrize(("number", "code"), [(2, 130), (21, 130), (15, 143)])
def test_ctrl_break_is_ctrl_c(monkeypatch: pytest.MonkeyPatch, number: int, code: int) -> None:
    set_for: dict[int, Any] = {}
    system = SimpleNamespace(
        SIGINT=2, SIGTERM=15, SIGBREAK=21, SIG_DFL=0, default_int_handler=1, getsignal=lambda number: 0,
        signal=set_for.__setitem__,
    )  # fmt: skip
    ended: list[int] = []
    monkeypatch.setattr(start, "_signal", system)
    monkeypatch.setattr(start, "os", SimpleNamespace(_exit=ended.append, write=len, environ={}))
    monkeypatch.setattr(start, "_print_version", len)
    monkeypatch.setattr(sys, "argv", ["cogcli", "--version"])
    start.main()
    set_for[number](number, None)
    assert ended == [code]


def test_help_asks_for_no_quotes_around_json() -> None:
    pages = [*(PACKAGE / "app" / "pages").glob("*.txt"), PACKAGE.parent / "docs" / "cli.md"]
    quoted = [
        f"{page.name}: {line}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if any(f"{mark}{bracket}" in line for mark in (" '", ":='") for bracket in "{[")
        or ":=[" in line or ":={" in line
    ]  # fmt: skip
    assert quoted == []
