"""The command in the process of the tests: all of `cogcli`, but the start of an interpreter.

1. It gets what a process would get: arguments, variables, a working directory, and the descriptors 0, 1 and 2, which
   are files in memory while it runs. Its own children and foreign code see these, too.
2. Afterwards everything that belongs to the process is as it was: descriptors, directory, variables, time zone, signal
   handlers, search path, modules of the project, the collector, umask, limits of the interpreter.
3. What the package keeps for the life of a process (circuits, documents read) is forgotten before each command, but for
   what follows from its code and from arguments alone (`PURE`): that is the same for every command.
4. What would differ from a process fails the test instead: threads, children or open files of a project that are left
   over, a call of `os._exit`, variables that an interpreter reads at its start, a second command at the same time.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` wraps each of its answers in an enum
import contextvars
import functools
import gc
import io
import os
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import cogcli

_ENDING_SECONDS: Final = 20.0
"""How long daemon threads may take to end after the command has: they were told to, and a machine may be busy."""
_OF_THE_START: Final = ("PYTHON", "LD_", "LC_ALL", "LC_CTYPE", "MALLOC_")
_HARMLESS: Final = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
_UTF8_LOCALES: Final = ("", "C", "POSIX", "C.UTF-8", "en_US.UTF-8")
"""Under each of these the streams of an interpreter are UTF-8."""
PURE: Final = (
    "cogcli.app.schemas",
    "cogcli.base.canonical",
    "cogcli.base.expressions",
    "cogcli.base.redact",
    "cogcli.base.refs",
    "cogcli.base.schema.patterns",
    "cogcli.base.schema.validator",
    "cogcli.base.secret_search",
    "cogcli.base.sqlite_file",
    "cogcli.base.system",
    "cogcli.base.yaml.parsers",
    "cogcli.cli.typer_app",
    "cogcli.declarations.checked",
    "cogcli.declarations.reading",
    "cogcli.official.classify",
    "cogcli.official.extract",
    "cogcli.official.national_ids",
    "cogcli.official.patterns",
    "cogcli.official.sentences",
    "cogcli.official.sentiment",
    "cogcli.official.text",
    "cogcli.policy.freshness",
    "cogcli.policy.guardrails",
    "cogcli.protocols.pythoncall.contract",
    "cogcli.report.html",
    "cogcli.run.recorded_start",
    "cogcli.specs.cache",
    "cogcli.specs.checks.references",
    "cogcli.specs.module_lookup",
    "cogcli.specs.plausible_syntax",
    "cogcli.specs.shape_of_spec",
    "cogcli.specs.step_values",
    "cogcli.specs.template",
)
"""Modules whose functions remember only what follows from their arguments and from the code, which stays the same."""
_SIGNALS: Final = tuple(map(int, signal.valid_signals()))
_running = threading.Lock()
_over = threading.Event()


def sleep(seconds: float) -> None:
    """For functions that commands call: what a command abandons ends with it, as the end of a process would end it."""
    _over.wait(seconds)


class NeedsAProcess(AssertionError):
    """What a command did, or was asked to do, would be different in a process of its own."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}: run it with `Project.installed`")


def run(
    arguments: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], data: bytes | None = b""
) -> tuple[int, bytes, bytes]:
    """The exit code and both streams of a command; without data its stdin is closed. Raises NeedsAProcess."""
    _require_no_start(env)
    if threading.current_thread() is not threading.main_thread() or not _running.acquire(
        blocking=False
    ):
        raise NeedsAProcess("commands at the same time")
    try:
        return _run([_as_argument(word) for word in arguments], cwd, env, data)
    finally:
        _running.release()


def _run(
    argv: list[str], cwd: Path, env: Mapping[str, str], data: bytes | None
) -> tuple[int, bytes, bytes]:
    _forget()
    _over.clear()
    with ExitStack() as stack:
        out = os.fdopen(stack.enter_context(_descriptor(1)), "rb", closefd=False)
        err = os.fdopen(stack.enter_context(_descriptor(2)), "rb", closefd=False)
        stack.enter_context(_descriptor(0, data or b""))
        left_over = stack.enter_context(_watched(cwd))
        for one in (
            _variables(env),
            _directory(cwd),
            _interpreter(argv),
            _streams(has_stdin=data is not None),
        ):
            stack.enter_context(one)
        code = contextvars.copy_context().run(_code)
        left_over()
        return code, _all_of(out), _all_of(err)


def _all_of(file: Any) -> bytes:
    file.seek(0)
    return bytes(file.read())


def _as_argument(word: str) -> str:
    """The word as a process finds it. Raises as the start of one would for what no process can be given."""
    data = os.fsencode(word)
    if b"\0" in data:
        raise ValueError("embedded null byte")
    return os.fsdecode(data)


def _require_no_start(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        if name in _HARMLESS or not name.startswith(_OF_THE_START):
            continue
        if name.startswith("LC_") and value in _UTF8_LOCALES:
            continue
        raise NeedsAProcess(f"{name}={value} is read at the start of an interpreter")


# -- the command ------------------------------------------------------------------------------------------------------


def _code() -> int:
    """How `sys.exit(main())` would end the process, with what the interpreter does then."""
    from cogcli.__main__ import main

    try:
        code = _status(main())
    except SystemExit as ended:
        code = _status(ended.code)
    except Exception:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120 if stream is sys.stdout else code
    return code


def _status(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF
    print(value, file=sys.stderr)
    return 1


def _forget() -> None:
    """Empty what the package remembers beyond a command."""
    for cached in _caches(len(sys.modules)):
        cached.cache_clear()


@functools.lru_cache(maxsize=1)
def _caches(modules: int) -> list[Any]:
    """The functions of the loaded package that remember anything but what follows from code and arguments."""
    kind = type(_caches)
    found = {
        id(value): value
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "cogcli"
        for value in vars(module).values()
        if isinstance(value, kind) and value.__module__ not in PURE
    }
    return list(found.values())


# -- what belongs to the process --------------------------------------------------------------------------------------


@contextmanager
def _descriptor(number: int, data: bytes | None = None) -> Iterator[int]:
    """While inside, a standard descriptor is a file in memory, which the given one is, too."""
    own = _file_in_memory()
    saved = os.dup(number)
    if data is not None:
        _write_all(own, data)
        os.lseek(own, 0, os.SEEK_SET)
    os.dup2(own, number)
    try:
        yield own
    finally:
        os.dup2(saved, number)
        os.close(saved)
        os.close(own)


def _file_in_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("cogcli", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


@contextmanager
def _streams(*, has_stdin: bool) -> Iterator[None]:
    """Streams as an interpreter makes them under a UTF-8 locale, on the three descriptors."""
    if not has_stdin:
        os.close(0)
    names = ("stdin", "stdout", "stderr")
    before = {name: (getattr(sys, name), getattr(sys, f"__{name}__")) for name in names}
    made = (
        _text(0, "rb", "surrogateescape") if has_stdin else None,
        _text(1, "wb", "surrogateescape"),
        _text(2, "wb", "backslashreplace", line_buffering=True),
    )
    for name, stream in zip(names, made, strict=True):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    try:
        yield
    finally:
        for name, (now, real) in before.items():
            setattr(sys, name, now)
            setattr(sys, f"__{name}__", real)
        for stream in made:
            if stream is not None:
                stream.close()


def _text(number: int, mode: str, errors: str, *, line_buffering: bool = False) -> io.TextIOWrapper:
    raw = open(number, mode, closefd=False)  # noqa: SIM115  # closed with the stream around it
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=line_buffering)


@contextmanager
def _directory(cwd: Path) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY)
    os.chdir(cwd)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextmanager
def _variables(env: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    temporary = tempfile.tempdir
    _become(env)
    tempfile.tempdir = None
    try:
        yield
    finally:
        tempfile.tempdir = temporary
        _become(before)


def _become(env: Mapping[str, str]) -> None:
    zone = os.environ.get("TZ")
    for name in os.environ.keys() - env.keys():
        del os.environ[name]
    os.environ.update(env)
    if os.environ.get("TZ") != zone:
        time.tzset()


@contextmanager
def _interpreter(argv: list[str]) -> Iterator[None]:
    """Everything else that a command may change in its interpreter."""
    path, finders, modules = sys.path[:], sys.meta_path[:], dict(sys.modules)
    handlers = {number: _signal.getsignal(number) for number in _SIGNALS}
    depth, digits, switching = (
        sys.getrecursionlimit(),
        sys.get_int_max_str_digits(),
        sys.getswitchinterval(),
    )
    arguments, writes_no_code, mask = sys.argv, sys.dont_write_bytecode, os.umask(0o022)
    os.umask(mask)
    collects = gc.isenabled()
    sys.argv = [str(Path(sys.executable).parent / "cogcli"), *argv]
    sys.path[:] = [str(Path(sys.executable).parent), *_installed_path()]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.setrecursionlimit(depth + _frames())
    try:
        yield
    finally:
        sys.argv, sys.dont_write_bytecode = arguments, writes_no_code
        sys.path[:] = path
        _forget_foreign_modules(modules)
        # What an installed library added stays as long as the library does: `six` finds its modules through it.
        added = [finder for finder in sys.meta_path if finder not in finders]
        sys.meta_path[:] = finders + [
            each for each in added if type(each).__module__ in sys.modules
        ]
        for number, handler in handlers.items():
            if handler is not None and _signal.getsignal(number) is not handler:
                _signal.signal(number, handler)
        sys.setrecursionlimit(depth)
        sys.set_int_max_str_digits(digits)
        sys.setswitchinterval(switching)
        os.umask(mask)
        (gc.enable if collects else gc.disable)()


def _frames() -> int:
    """How deep the tests are already: a command finds its stack empty."""
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count


@functools.cache
def _installed_path() -> list[str]:
    """Where the installed command looks for modules: what the tests added is not among it."""
    program = "import sys; print(*sys.path[1:], sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd="/", capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@functools.cache
def _own_places() -> tuple[str, ...]:
    """Where modules lie that stay loaded: those of Python, of its packages and of ours."""
    paths = sysconfig.get_paths()
    places = {
        paths["stdlib"],
        paths["platstdlib"],
        paths["purelib"],
        paths["platlib"],
        *site.getsitepackages(),
    }
    return (*(f"{place}/" for place in places), f"{Path(cogcli.__file__).parent}/")


def _forget_foreign_modules(known: Mapping[str, Any]) -> None:
    """Unload what was imported from a project, and forget what its folders held."""
    for name in sys.modules.keys() - known.keys():
        file = _file_of(sys.modules[name])
        if file and not file.startswith(_own_places()):
            del sys.modules[name]
    for place in [
        place for place in sys.path_importer_cache if not f"{place}/".startswith(_own_places())
    ]:
        del sys.path_importer_cache[place]


def _file_of(module: Any) -> str:
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return file
    places = getattr(module, "__path__", None)
    return next(iter(places), "") + "/" if places else ""


# -- what would differ from a process ----------------------------------------------------------------------------------


@contextmanager
def _watched(cwd: Path) -> Iterator[Callable[[], None]]:
    """Gives what raises NeedsAProcess for what the end of a process would have ended, and for `os._exit`."""
    ours: list[threading.Thread] = []
    exits: list[int] = []
    main, start, leave = threading.main_thread(), threading.Thread.start, os._exit
    children = _children()

    def started(thread: threading.Thread) -> None:
        by = threading.current_thread()
        if by is main or by in ours:
            ours.append(thread)
        start(thread)

    def left(code: int) -> NoReturn:
        exits.append(code)
        raise SystemExit(code)

    def left_over() -> None:
        _over.set()
        if exits:
            raise NeedsAProcess(f"os._exit({exits[0]})")
        until = time.monotonic() + _ENDING_SECONDS
        for thread in ours:
            thread.join(max(0.0, until - time.monotonic()) if thread.daemon else None)
            if thread.is_alive():
                raise NeedsAProcess(f"the thread {thread.name} goes on after the command")
        while left_children := [pid for pid in _children() - children if _is_ours(pid)]:
            if time.monotonic() > until:
                raise NeedsAProcess(f"the processes {left_children} go on after the command")
            time.sleep(0.002)
        if _open_files(str(cwd)):
            gc.collect()  # a caught error may hold them a little longer
            for file in _open_files(str(cwd)):
                raise NeedsAProcess(f"{file} is still open after the command")

    threading.Thread.start = started  # type: ignore[method-assign]
    os._exit = left
    try:
        yield left_over
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        os._exit = leave


def _children() -> set[int]:
    """Those of every thread. The main thread's are read last: a thread that ends leaves its children to it."""
    main = str(threading.main_thread().native_id)
    threads = sorted(Path("/proc/self/task").glob("*"), key=lambda thread: thread.name == main)
    found: set[int] = set()
    for thread in threads:
        with suppress(OSError):
            found.update(int(pid) for pid in (thread / "children").read_text().split())
    return found


def _is_ours(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _open_files(below: str) -> list[str]:
    found = []
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return []
    for name in names:
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith(f"{below}/"):
            found.append(target)
    return found
