"""What a project is trusted with, file by file (protocols.md 2): each file by the digest of its bytes.

1. The service files and bindings of all its registry roots.
2. Below a root that holds a module which a service names: every file that Python can import.
3. Of a program: the path where it is found, and each argument that is a file of the project.
4. The document of a service whose own file does not say where it is: its secrets go where that document says.

Names are relative to the project. What services ask for is read when the project is accepted and kept with the digests:
as long as the service files are those that were accepted, they ask for the same.
"""

from __future__ import annotations

import os
import stat
import sys
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.errors import EnvironmentRefusal
from cogcli.core.files import FileRefused, read_regular
from cogcli.specs.host_layout import SERVICES_FILE, layout_of
from cogcli.specs.names import PLACEHOLDER
from cogcli.specs.service import is_shipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cogcli.specs.layers import Layer

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 * 1024 * 1024
_IMPORTED: Final = (".py", ".so", ".pyd")
"""Endings of what the import of a module can execute. Bytecode of a project is never read."""
_INSTALLED: Final = "pyvenv.cfg"
"""What marks a virtual environment, whose packages are installed and not a part of the project."""


class Needs(NamedTuple):
    """What the services of a project ask for: `[root, module]`,
    `[root, service, command, args, cwd, PATH of its own]`, each root relative to the project, and the documents that
    say where a service is, each by every path that it may have, relative to the project."""

    modules: tuple[tuple[str, str], ...] = ()
    programs: tuple[tuple[str, str, str, tuple[str, ...], str, str], ...] = ()
    documents: tuple[str, ...] = ()


class Found(NamedTuple):
    """By name: the path of each file, and where each program is."""

    files: dict[str, str]
    programs: dict[str, str]


def service_files(project: str, layers: Iterable[Layer]) -> dict[str, str]:
    """The paths of the files that describe services, by name; those that the registry reads, no others."""
    return {_name(project, path): path for layer in layers for path in _service_files(layer)}


def _service_files(layer: Layer) -> Iterator[str]:
    yield from (place.path for place in layout_of(layer).all("service"))
    host = os.path.join(layer.root, SERVICES_FILE)
    if layer.host and os.path.lexists(host):
        yield host


def needs_of(project: str, layers: Iterable[Layer]) -> Needs:
    """What all service files of a project ask for, in order or not: a file that cannot be read asks for nothing."""
    modules: set[tuple[str, str]] = set()
    programs: set[tuple[str, str, str, tuple[str, ...], str, str]] = set()
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
    from cogcli.specs.yaml_io import read

    value = read(path, file=path)[1].value
    if not isinstance(value, dict):
        return []
    entries = value.get("services")
    several = entries if isinstance(entries, dict) else {str(value.get("id")): value}
    return [(str(id), entry) for id, entry in several.items() if isinstance(entry, dict)]


def _started_with(service: dict[str, Any]) -> tuple[tuple[str, ...], str, str]:
    args, environ = service.get("args"), service.get("env")
    search = environ.get("PATH") if isinstance(environ, dict) else None
    return (
        tuple(map(str, args if isinstance(args, list) else ())),
        str(service.get("cwd") or ""),
        str(search or ""),
    )


def found(project: str, layers: Sequence[Layer], needs: Needs, environ: Mapping[str, str]) -> Found:
    """What there is now of all that counts."""
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
    for root, service, command, args, cwd, own in needs.programs:
        place = os.path.join(project, root, cwd)
        path = _program(command, place, own, environ)
        programs[f"program {command} of service {service} in {root}"] = os.path.realpath(path) if path else ""
        given = [os.path.join(place, part) for arg in args for part in _parts(arg)]
        for each in (path, *given):
            if each and _is_file_of(each, project, os.path.join(project, root)):
                files[_name(project, each)] = each
        # Python runs a folder that holds this file as it runs a module.
        run = [each for each in given if os.path.isfile(os.path.join(each, "__main__.py"))]
        for named in (*run, *(os.path.join(place, module) for module in _modules_run(args))):
            files |= {_name(project, path): path for path in (f"{named}.py", *_importable(named, whole=True))
                      if os.path.isfile(path)}  # fmt: skip
    return Found(files, programs)


def _holds(root: str, module: str) -> bool:
    """Whether anything below a root could be taken for a module."""
    top = module.partition(".")[0]
    try:
        return any(name.partition(".")[0] == top for name in os.listdir(root))
    except OSError:
        return False


def _importable(folder: str, *, whole: bool) -> Iterator[str]:
    """The files below a folder that Python can import. A package is looked at as a whole; elsewhere hidden folders and
    what was installed is left out, where no name of a module leads."""
    waiting, seen = [folder], {os.path.realpath(folder)}
    while waiting:
        place = waiting.pop()
        entries = _entries(place)
        if not whole and place != folder and any(name == _INSTALLED for name, _ in entries):
            continue
        for name, is_folder in entries:
            path = os.path.join(place, name)
            if not is_folder:
                if name.endswith(_IMPORTED):
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
    """Where a program is found; empty if it is not."""
    import shutil

    search = PLACEHOLDER.sub(lambda match: environ.get(match[1], ""), own_path)
    named = os.path.join(place, command) if os.path.dirname(command) else command
    return shutil.which(named, path=search or environ.get("PATH", os.defpath)) or ""


def _modules_run(args: Sequence[str]) -> Iterator[str]:
    """The packages that `-m NAME` and `-mNAME` name, where the program is one that takes these as Python does."""
    for number, argument in enumerate(args):
        if argument == "-m":
            yield from (name.partition(".")[0] for name in args[number + 1 : number + 2])
        elif argument.startswith("-m"):
            yield argument[2:].partition(".")[0]


def _parts(argument: str) -> tuple[str, ...]:
    """What of an argument may name a file: all of it, and what follows `=`."""
    _, is_split, rest = argument.partition("=")
    return (argument, rest) if is_split and rest else (argument,)


def _is_file_of(path: str, project: str, root: str) -> bool:
    """Whether a path leads to a regular file, and lies in the project or in the root of its service."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
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


def digests(found: Found) -> dict[str, str]:
    """What stands for each file and program. Raises EnvironmentRefusal `trust.size` for more than can be looked at."""
    if len(found.files) > MAX_FILES:
        raise _too_much()
    left, told = MAX_BYTES, dict(found.programs)
    for name, path in found.files.items():
        try:
            data = read_regular(path, limit=left)
        except FileRefused as refused:
            if refused.reason == "too-large":
                raise _too_much() from refused
            told[name] = refused.reason
            continue
        left -= len(data)
        told[name] = f"sha256:{sha256(data).hexdigest()}"
    return told


def identities(found: Found) -> tuple[str, int, int]:
    """One digest over what the system says of each file without reading it; when the newest was changed, in
    nanoseconds; how many bytes they have. A system that cannot say when a file was changed gives no digest."""
    total, newest, size = sha256(repr(sorted(found.programs.items())).encode(errors="surrogateescape")), 0, 0
    for name, path in sorted(found.files.items()):
        try:
            told = os.stat(path)
        except OSError:
            return "", 0, 0
        newest, size = max(newest, told.st_ctime_ns, told.st_mtime_ns), size + told.st_size
        about = (
            name,
            told.st_dev,
            told.st_ino,
            told.st_mode,
            told.st_size,
            told.st_mtime_ns,
            told.st_ctime_ns,
        )
        total.update(repr(about).encode(errors="surrogateescape"))
    return "" if sys.platform == "win32" else total.hexdigest(), newest, size


def _name(project: str, path: str) -> str:
    """A path relative to the project, as text that stands for this path alone."""
    name = os.path.relpath(path, project).replace(os.sep, "/")
    return name if name.isprintable() and "\\" not in name else ascii(name)


def _too_much() -> EnvironmentRefusal:
    return EnvironmentRefusal(
        "trust.size",
        f"the project has more than can be accepted by digest: {MAX_FILES:,} files, {MAX_BYTES:,} bytes",
        hint="trust the folder, whatever it holds: cogcli config trust --folder",
        next=("cogcli config trust --folder",),
    )
