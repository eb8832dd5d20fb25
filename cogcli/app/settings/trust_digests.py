"""The files and programs that the trust in a project covers (docs/reference/service.md#trust), each with its digest.

1. The service files and bindings of all its registry roots.
2. Below a root that holds a module which a service names: every file that Python can import.
3. Of a program: the path where it is found, each file of the project that its arguments and variables name, and of each
   folder that a variable names what in it can be run.
4. The document of a service whose own file does not say where it is: its secrets go where that document says.
5. The tables of the project's settings: a key goes where `[model]` says.

Names are relative to the project. What services ask for is read when the project is accepted and kept with the digests:
as long as the service files are those that were accepted, they ask for the same.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

from cogcli.app.settings.config import PROJECT_FILE, ROOTS, ConfigFile
from cogcli.core.canonical import digest_of
from cogcli.core.errors import EnvironmentRefusal
from cogcli.core.files import FileRefused, read_regular
from cogcli.specs.host_layout import SERVICES_FILE, layout_of
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.layers import Layer
from cogcli.specs.service import is_shipped
from cogcli.yaml.reader import read_file

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 * 1024 * 1024
_IMPORTED: Final = (".py", ".so", ".pyd")
"""Endings of what the import of a module can execute. Bytecode of a project is never read."""
_RUN: Final = (
    *_IMPORTED, ".pyc", ".pth", ".js", ".cjs", ".mjs", ".ts", ".node", ".rb", ".pm", ".pl", ".sh", ".bash", ".lua",
    ".php", ".jar", ".class", ".wasm", ".dll", ".dylib",
)  # fmt: skip
"""Endings of what programs load from folders that their variables name."""
_SEPARATORS: Final = ("\\s+", re.escape(os.pathsep), "[\\s:;,=]+")
"""Separators of file names in one text: blanks, the separator of `PATH`, and all of these."""
_LONGEST: Final = 4096
_INSTALLED: Final = "pyvenv.cfg"
"""What marks a virtual environment, whose packages are installed and not a part of the project."""


Program: TypeAlias = tuple[str, str, str, tuple[str, ...], str, str, tuple[str, ...]]


class Needs(NamedTuple):
    """What the services of a project ask for: `[root, module]`,
    `[root, service, command, args, cwd, PATH of its own, variables]`, each root relative to the project and each
    variable as written, and the documents that say where a service is, each by every path that it may have, relative
    to the project."""

    modules: tuple[tuple[str, str], ...] = ()
    programs: tuple[Program, ...] = ()
    documents: tuple[str, ...] = ()


class FoundPaths(NamedTuple):
    """By name: the path of each file, where each program is, and the digest of each table of the settings."""

    files: dict[str, str]
    programs: dict[str, str]
    tables: dict[str, str]


def service_files(project: str, layers: Iterable[Layer]) -> dict[str, str]:
    """The paths of the files that describe services, by name; those that the registry reads, no others."""
    return {_name(project, path): path for layer in layers for path in _service_files(layer)}


def _service_files(layer: Layer) -> Iterator[str]:
    yield from (place.path for place in layout_of(layer).all("service"))
    host = os.path.join(layer.root, SERVICES_FILE)
    if layer.host and os.path.lexists(host):
        yield host


def needs_of(project: str, layers: Iterable[Layer]) -> Needs:
    """The needs of all service files of a project, valid or not; an unreadable file has none."""
    modules: set[tuple[str, str]] = set()
    programs: set[Program] = set()
    documents: set[str] = set()
    for layer in layers:
        root = os.path.relpath(layer.home, project)
        for path in _service_files(layer):
            for id, service in _services_in(path):
                module, command = service.get("module"), service.get("command")
                if isinstance(module, str) and not is_shipped(module):
                    modules.add((root, module))
                if isinstance(command, str):
                    programs.add((root, id, command, *_started_with(service)))
                document = service.get("spec_ref")
                if isinstance(document, str) and not (service.get("base_url") or service.get("url")):
                    for folder in (os.path.dirname(path), layer.home):
                        documents.add(os.path.relpath(os.path.join(folder, document), project))
    return Needs(tuple(sorted(modules)), tuple(sorted(programs)), tuple(sorted(documents)))


def _services_in(path: str) -> list[tuple[str, dict[str, Any]]]:
    value = read_file(path, file=path)[1].value
    if not isinstance(value, dict):
        return []
    entries = value.get("services")
    several = entries if isinstance(entries, dict) else {str(value.get("id")): value}
    return [(str(id), entry) for id, entry in several.items() if isinstance(entry, dict)]


def _started_with(service: dict[str, Any]) -> tuple[tuple[str, ...], str, str, tuple[str, ...]]:
    args, environ = service.get("args"), service.get("env")
    variables = environ if isinstance(environ, dict) else {}
    search = variables.get("PATH")
    return (
        tuple(map(str, args if isinstance(args, list) else ())),
        str(service.get("cwd") or ""),
        str(search or ""),
        tuple(sorted({str(value) for value in variables.values()})),
    )


def find_files(
    project: str, layers: Sequence[Layer], needs: Needs, settings: ConfigFile, environ: Mapping[str, str]
) -> FoundPaths:
    """The files, programs and settings that count, as they exist now; `settings` is the project's configuration."""
    files = service_files(project, layers)
    for layer in layers:
        files |= {_name(project, place.path): place.path for place in layout_of(layer).all("binding")}
    for root in {root for root, module in needs.modules if _holds(os.path.join(project, root), module)}:
        files |= {
            _name(project, path): path for path in _importable(os.path.join(project, root), whole=False)
        }
    for root, module in needs.modules:
        package = os.path.join(project, root, module.partition(".")[0])
        files |= {_name(project, path): path for path in _importable(package, whole=True)}
    documents = (os.path.join(project, document) for document in needs.documents)
    files |= {_name(project, path): path for path in documents if os.path.isfile(path)}
    programs = {}
    for program in needs.programs:
        root, service, command, _, cwd, own, _ = program
        path = _program(command, os.path.join(project, root, cwd), own, environ)
        programs[f"program {command} of service {service} in {root}"] = os.path.realpath(path) if path else ""
        files |= {_name(project, each): each for each in _files_of(program, path, project, environ)}
    return FoundPaths(files, programs, tables_of(settings))


def tables_of(settings: ConfigFile) -> dict[str, str]:
    """By name the digest of each table of a project's settings, and of `builtin`, if it is there: what stands there
    counts for trusted projects only, and the safety of what is shipped goes with its layer."""
    tables: dict[str, dict[str, Any]] = {}
    for key, value in settings.values.items():
        table, dot, _ = key.partition(".")
        if dot or key == ROOTS:
            tables.setdefault(f"[{table}] of {PROJECT_FILE}", {})[key] = value
        elif key == "builtin":
            tables[f"builtin of {PROJECT_FILE}"] = {key: value}
    return {name: digest_of(values) for name, values in tables.items()}


def _files_of(program: Program, path: str, project: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The files of the project that a program, found at `path`, gets to run or to load."""
    root, _, _, args, cwd, _, variables = program
    home = os.path.join(project, root)
    place = os.path.join(home, cwd)
    given = [os.path.join(place, part) for arg in args for part in _names_in(arg)]
    values = {_expanded(text, environ) for text in variables}
    set_to = [os.path.join(place, part) for value in values for part in _names_in(value)]
    loaded = (each + ending for each in (*given, *set_to) if _is_short(each, place) for ending in _RUN)
    for each in (path, *given, *set_to, *loaded):
        if _is_of(each, project, home, stat.S_ISREG):
            yield each
    for folder in set_to:
        if _is_of(folder, project, home, stat.S_ISDIR):
            yield from _below(folder, _can_be_run)
    # Python runs a folder that holds this file as it runs a module.
    run = [each for each in given if os.path.isfile(os.path.join(each, "__main__.py"))]
    for named in (*run, *(os.path.join(place, module) for module in _modules_run(args))):
        yield from (each for each in (f"{named}.py", *_importable(named, whole=True)) if os.path.isfile(each))


def _holds(root: str, module: str) -> bool:
    """Whether a root holds a file or folder that Python would import under this module name."""
    top = module.partition(".")[0]
    try:
        return any(name.partition(".")[0] == top for name in os.listdir(root))
    except OSError:
        return False


def _importable(folder: str, *, whole: bool) -> Iterator[str]:
    """The files below a folder that Python can import. A package is looked at as a whole; elsewhere hidden folders and
    what was installed is left out, where no name of a module leads."""
    return _below(folder, lambda path: path.endswith(_IMPORTED), whole=whole)


def _can_be_run(path: str) -> bool:
    """Whether a program may load or start a file: by its ending, or since it may be executed."""
    if path.endswith(_RUN) or ".so." in os.path.basename(path):
        return True
    try:
        return sys.platform != "win32" and bool(os.stat(path).st_mode & 0o111)
    except OSError:
        return False


def _below(folder: str, counts: Callable[[str], bool], *, whole: bool = False) -> Iterator[str]:
    """The files below a folder that count. What is looked at as a whole includes hidden folders and what was
    installed."""
    waiting, seen = [folder], {os.path.realpath(folder)}
    while waiting:
        place = waiting.pop()
        entries = _entries(place)
        if not whole and place != folder and any(name == _INSTALLED for name, _ in entries):
            continue
        for name, is_folder in entries:
            path = os.path.join(place, name)
            if not is_folder:
                if counts(path):
                    yield path
            elif name != "__pycache__" and (whole or not (name[0] == "." or name == "node_modules")):
                real = os.path.realpath(path)
                if real not in seen:
                    seen.add(real)
                    waiting.append(path)
        if len(seen) > MAX_FILES:
            raise _too_much()


def _entries(folder: str) -> list[tuple[str, bool]]:
    """The names in a folder in order, each with whether it is, or leads to, a folder; none where it cannot be read."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry.name, os.path.isdir(entry.path)) if entry.is_symlink()
                          else (entry.name, entry.is_dir()) for entry in found)  # fmt: skip
    except OSError:
        return []


def _program(command: str, place: str, own_path: str, environ: Mapping[str, str]) -> str:
    """The path of a program; empty if it is not found."""
    import shutil

    search = _expanded(own_path, environ)
    named = os.path.join(place, command) if os.path.dirname(command) else command
    return shutil.which(named, path=search or environ.get("PATH", os.defpath)) or ""


def _modules_run(args: Sequence[str]) -> Iterator[str]:
    """The packages that `-m NAME` and `-mNAME` name, where the program is one that takes these as Python does."""
    for number, argument in enumerate(args):
        if argument == "-m":
            yield from (name.partition(".")[0] for name in args[number + 1 : number + 2])
        elif argument.startswith("-m"):
            yield argument[2:].partition(".")[0]


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: environ.get(match[1], ""), text)


def _names_in(text: str) -> set[str]:
    """What of an argument or a variable may name a file: all of it, and each part between blanks, in a list of
    folders, after `=`; of these also without quotes, `file://` and the letter of an option."""
    parts = {text, *(part for separator in _SEPARATORS for part in re.split(separator, text))}
    parts |= {part.strip("'\"") for part in parts}
    parts |= {part.partition("=")[2] for part in parts}
    parts |= {part[2:] for part in parts if re.match("-[A-Za-z]", part)}
    parts |= {part.removeprefix("file://") for part in parts}
    return {part for part in parts if part and "\0" not in part and len(part) < _LONGEST}


def _is_short(path: str, place: str) -> bool:
    """Whether a loader may add an ending: what leads on from a place (`./hook`) and has none."""
    return not os.path.splitext(path)[1] and "/" in path[len(place) + 1 :]


def _is_of(path: str, project: str, root: str, is_kind: Callable[[int], bool]) -> bool:
    """Whether a path leads to a file of this kind, and lies in the project or in the root of its service."""
    try:
        if not is_kind(os.stat(path).st_mode):
            return False
    except (OSError, ValueError):
        return False
    written, real = os.path.normpath(path), os.path.realpath(path)
    homes = [os.path.normpath(project), os.path.normpath(root)]
    return any(
        one == home or one.startswith(home.rstrip(os.sep) + os.sep)
        for home in (*homes, *map(os.path.realpath, homes))
        for one in (written, real)
    )


def digests(found: FoundPaths) -> dict[str, str]:
    """By name: the digest of each file, the path of each program. Raises EnvironmentRefusal `trust.size` for too
    much."""
    if len(found.files) > MAX_FILES:
        raise _too_much()
    left, by_name = MAX_BYTES, {**found.programs, **found.tables}
    for name, path in found.files.items():
        try:
            data = read_regular(path, limit=left)
        except FileRefused as refused:
            if refused.reason == "too-large":
                raise _too_much() from refused
            by_name[name] = refused.reason
            continue
        left -= len(data)
        by_name[name] = f"sha256:{sha256(data).hexdigest()}"
    return by_name


def identities(found: FoundPaths) -> tuple[str, int, int]:
    """A digest over the `stat` of each file; the time of the newest change in nanoseconds; the size of all in bytes.

    The digest is empty where a file is missing, and on Windows, which has no time of the last change.
    """
    named = sorted({**found.programs, **found.tables}.items())
    total, newest, size = sha256(repr(named).encode(errors="surrogateescape")), 0, 0
    for name, path in sorted(found.files.items()):
        try:
            status = os.stat(path)
        except OSError:
            return "", 0, 0
        newest, size = max(newest, status.st_ctime_ns, status.st_mtime_ns), size + status.st_size
        times = status.st_mtime_ns, status.st_ctime_ns
        about = (name, status.st_dev, status.st_ino, status.st_mode, status.st_size, *times)
        total.update(repr(about).encode(errors="surrogateescape"))
    return "" if sys.platform == "win32" else total.hexdigest(), newest, size


def _name(project: str, path: str) -> str:
    """A path relative to the project, as text that is unique for this path."""
    name = os.path.relpath(path, project).replace(os.sep, "/")
    return name if name.isprintable() and "\\" not in name else ascii(name)


def _too_much() -> EnvironmentRefusal:
    return EnvironmentRefusal(
        "trust.size",
        f"the project has more than can be accepted by digest: {MAX_FILES:,} files, {MAX_BYTES:,} bytes",
        hint="trust the folder, whatever it holds: cogcli config trust --folder",
        next=("cogcli config trust --folder",),
    )
