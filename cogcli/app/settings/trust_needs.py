"""The modules, programs and documents that a project's services start or read
(docs/reference/service.md#trust).

They are called needs. They are read when the project is accepted, and stored with the digests,
because they remain the same until a service file changes."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from typing import Final, TypeAlias

from cogcli.app.settings.config import PROJECT_FILE, ConfigFile
from cogcli.app.settings.model_adapters import MODELS
from cogcli.app.settings.trust_digests import BYTECODE, DecidingFiles
from cogcli.base.api_documents.references import find_document_files
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.yaml.reader import read_file
from cogcli.declarations.options import HOOKS
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.specs.host_layout import SERVICES_FILE, layout_of
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.layers import Layer
from cogcli.specs.layout import Layout
from cogcli.specs.lock import NAME as LOCK_FILE
from cogcli.specs.scenario_folders import directory_of
from cogcli.specs.service import is_shipped

_FOLDERS: Final = (*Layout.folders.values(), "policies")
"""The folders of a registry root. Every file below them decides."""
HOST_FILES: Final = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
"""Files of a project that name MCP servers, which `gateway serve --from` starts."""
_IMPORTED: Final = (".py", ".so", ".pyd")
"""Endings of the files that the import of a module can execute."""
_RUN: Final = (
    *_IMPORTED, ".pyc", ".pth", ".js", ".cjs", ".mjs", ".ts", ".node", ".rb", ".pm", ".pl", ".sh", ".bash", ".lua",
    ".php", ".jar", ".class", ".wasm", ".dll", ".dylib", ".mts", ".cts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt",
    ".cs", ".csproj", ".ps1", ".bat", ".cmd", ".zsh", ".fish",
)  # fmt: skip
"""Endings of the files that programs load from folders that their variables name."""
_CODE: Final = re.compile("-[bBdEiIOPqsSuvx]*[mc]")
"""The beginning of an argument that makes Python run a module or a text; then it imports from the
working directory."""
_LAUNCHERS: Final = frozenset(
    (
        "bun cargo composer deno dotnet go gradle hatch just make mvn npm pdm pipenv pixi pnpm poetry rake rye task"
        " tox uv yarn"
    ).split()
)
"""Programs that start a program declared in a file of the working directory."""
_FETCHERS: Final = frozenset("bunx docker docker-compose nix npx pipx pnpx podman uvx".split())
"""Programs that download the program they start. Files of the working directory declare the source, or a
replacement.
"""
_MANIFESTS: Final = frozenset(
    (
        "package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml yarn.lock .npmrc .yarnrc"
        " .yarnrc.yml bun.lock bunfig.toml deno.json deno.jsonc deno.lock tsconfig.json pyproject.toml uv.lock uv.toml"
        " .python-version poetry.lock poetry.toml pdm.lock Pipfile Pipfile.lock pixi.toml tox.ini Makefile makefile"
        " GNUmakefile justfile Justfile .justfile Rakefile Gemfile Taskfile.yml Taskfile.yaml composer.json Cargo.toml"
        " Cargo.lock go.mod go.work pom.xml build.gradle build.gradle.kts settings.gradle compose.yaml compose.yml"
        " docker-compose.yaml docker-compose.yml docker-compose.override.yml compose.override.yaml Dockerfile"
        " Containerfile flake.nix flake.lock"
    ).split()
)
"""Files that declare what these programs start, and the source of the download."""
_STARTED: Final = ("__main__.py", "package.json", "index.js")
"""Files of a folder that can be started as a program."""
_SEPARATORS: Final = ("\\s+", re.escape(os.pathsep), "[\\s:;,=]+")
"""Separators of file names in one text: blanks, the separator of `PATH`, and all of these."""
_LONGEST: Final = 4096


Program: TypeAlias = tuple[str, str, str, tuple[str, ...], str, str, tuple[str, ...]]
"""Root, service, command, arguments, working directory, its own `PATH`, and the values of its
variables as written."""


class ServiceRequirements(NamedTuple):
    """The modules, programs and documents that the services of a project need.

    Modules and documents are pairs with a root. A document has a pair for each possible path. Roots and documents are
    relative to the project.
    """

    modules: tuple[tuple[str, str], ...] = ()
    programs: tuple[Program, ...] = ()
    documents: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_entry(cls, entry: Json) -> ServiceRequirements:
        """Return the needs in an entry of the store.

        Raise KeyError, TypeError or ValueError for a damaged entry."""
        return cls(
            tuple((root, module) for root, module in entry["modules"]),
            tuple(
                (root, service, command, tuple(args), cwd, path, tuple(variables))
                for root, service, command, args, cwd, path, variables in entry["programs"]
            ),
            tuple((root, document) for root, document in entry["documents"]),
        )

    def merge(self, other: ServiceRequirements) -> ServiceRequirements:
        """Return these needs together with others."""
        return ServiceRequirements(
            tuple(sorted({*self.modules, *other.modules})),
            tuple(sorted({*self.programs, *other.programs})),
            tuple(sorted({*self.documents, *other.documents})),
        )


def find_service_files(layers: Iterable[Layer]) -> list[str]:
    """Return the paths of the files that declare services. The registry reads exactly these
    files."""
    return [path for layer in layers for path in _find_service_files(layer)]


def _find_service_files(layer: Layer) -> Iterator[str]:
    yield from (place.path for place in layout_of(layer).all("service"))
    host = os.path.join(layer.root, SERVICES_FILE)
    if layer.host and os.path.lexists(host):
        yield host


def find_service_needs(
    project: str, layers: Iterable[Layer], only: Iterable[str] | None = None
) -> ServiceRequirements:
    """Return the needs of the services in a project, or of those in the files `only`.

    A file that cannot be read has no needs."""
    modules: set[tuple[str, str]] = set()
    programs: set[Program] = set()
    documents: set[tuple[str, str]] = set()
    wanted = None if only is None else set(only)
    for layer in layers:
        root = os.path.relpath(layer.home, project)
        for path in _find_service_files(layer):
            if wanted is not None and os.path.abspath(path) not in wanted:
                continue
            folders = os.path.dirname(path), layer.home
            for id, service in _read_services(path):
                modules.update((root, module) for module in service.needed_modules)
                programs.update((root, id, *program) for program in service.launched_programs)
                places = service.document_places(folders)
                documents.update((root, os.path.relpath(place, project)) for place in places)
    return ServiceRequirements(
        tuple(sorted(modules)), tuple(sorted(programs)), tuple(sorted(documents))
    )


def find_model_needs(settings: ConfigFile) -> ServiceRequirements:
    """Return the need of a project's language model: the file with its recorded answers, if it
    reads one."""
    adapter, name = settings.values.get("model.adapter"), settings.values.get("model.name")
    if adapter in MODELS and MODELS[adapter].reads_file and isinstance(name, str):
        return ServiceRequirements(documents=((".", os.path.normpath(name)),))
    return ServiceRequirements()


def find_hook_needs(settings: ConfigFile) -> ServiceRequirements:
    """Return the programs that the hooks of a project start."""
    commands = ((f"hooks.{name}", settings.values.get(f"hooks.{name}")) for name in HOOKS)
    return ServiceRequirements(
        programs=tuple(
            (".", name, words[0], tuple(words[1:]), "", "", ()) for name, words in commands if words
        )
    )


class ServiceDependencies(Record):
    """The members of a service that name the program it starts, and the files it reads."""

    module: str | None = None
    command: str | None = None
    args: list[object]
    cwd: object = None
    env: Json
    spec_ref: str | None = None

    @property
    def needed_modules(self) -> list[str]:
        """Return the module of its functions, unless the module is shipped."""
        return [] if self.module is None or is_shipped(self.module) else [self.module]

    @property
    def launched_programs(self) -> list[tuple[str, tuple[str, ...], str, str, tuple[str, ...]]]:
        """Return command, arguments, working directory, PATH and environment values of the program that the
        service starts; an empty list if it starts none."""
        if self.command is None:
            return []
        args = tuple(map(str, self.args))
        search, values = self.env.get("PATH"), {str(value) for value in self.env.values()}
        return [(self.command, args, str(self.cwd or ""), str(search or ""), tuple(sorted(values)))]

    def document_places(self, folders: Iterable[str]) -> list[str]:
        """Return the paths, in these folders, that the service's document may have."""
        if self.spec_ref is None or "\0" in self.spec_ref:
            return []
        return [os.path.join(folder, self.spec_ref) for folder in folders]


class ServiceEntries(Record):
    """A file with one service, or with several services by id."""

    id: object = None
    services: Json | None = None


def _read_services(path: str) -> list[tuple[str, ServiceDependencies]]:
    """Return the services in a file, by id; empty if it cannot be read."""
    value = read_file(path, file=path)[1].value
    if value is None:
        return []
    file = read_record(ServiceEntries, value)
    several = {str(file.id): value} if file.services is None else file.services
    return [
        (str(id), read_record(ServiceDependencies, entry))
        for id, entry in several.items()
        if isinstance(entry, dict)
    ]


def find_files(project: str, layers: Sequence[Layer], needs: ServiceRequirements) -> DecidingFiles:
    """Return the present deciding files of a project, without the files of programs."""
    found = DecidingFiles(project)
    for name in (PROJECT_FILE, *HOST_FILES):
        found.add_file(os.path.join(project, name))
    for layer in layers:
        found.add_links(layer.root)
        found.add_file(os.path.join(layer.home, LOCK_FILE))
        folders = (
            [layer.root] if layer.host else [os.path.join(layer.root, name) for name in _FOLDERS]
        )
        for folder in folders:
            found.add_tree(folder, _is_read, _is_read)
    for protocol in PROTOCOLS:
        found.add_tree(os.path.join(project, directory_of(protocol)), _is_read, _is_read)
    _add_modules(found, project, needs.modules)
    for root, document in needs.documents:
        _add_document(found, os.path.join(project, root), os.path.join(project, document))
    return found


def _add_modules(files: DecidingFiles, project: str, modules: Sequence[tuple[str, str]]) -> None:
    """Add the files of modules. For each root that contains a module, add all its Python files,
    because the module may import them."""
    homes = [(os.path.join(project, root), module) for root, module in modules]
    files.folders.update(home for home, _ in homes)
    for home in {home for home, module in homes if _contains_module(home, module)}:
        files.add_tree(home, _is_imported, _is_of_project, installed=False)
    for home, module in homes:
        _add_package(files, os.path.join(home, module.partition(".")[0]))


def _add_document(files: DecidingFiles, root: str, path: str) -> None:
    """Add a document if it exists in its root. A document outside its root is never read."""
    files.folders.add(path)
    root_prefix = os.path.realpath(root).rstrip(os.sep) + os.sep
    if not os.path.isfile(path) or not os.path.realpath(path).startswith(root_prefix):
        return
    files.add_file(path)
    for other in find_document_files(path, root):
        files.add_file(other)


def _add_package(files: DecidingFiles, package: str) -> None:
    """Add every file in a package that Python can import, including hidden and installed files."""
    if os.path.isdir(package):
        files.add_tree(package, _is_imported, _is_not_bytecode)


def find_programs(
    project: str, needs: ServiceRequirements, environ: Mapping[str, str]
) -> DecidingFiles:
    """Return the paths of a project's programs, and the project files that they run or load."""
    found = DecidingFiles(project)
    for program in needs.programs:
        root, service, command, _, cwd, own, _ = program
        path = _find_program(command, os.path.join(project, root, cwd), own, environ)
        place = os.path.realpath(path) if path else ""
        found.add_program(f"program {command} of service {service} in {root}", place)
        _add_program_files(found, program, path, project, environ)
    return found


class _StartPlace(NamedTuple):
    """The place where a service's program starts: the project, the root of the service (`home`), and the working
    directory (`folder`).
    """

    project: str
    home: str
    folder: str

    def holds_file(self, path: str) -> bool:
        """Return whether a path leads to a file in the project or in the root."""
        return _is_in_project_or_root(path, self.project, self.home, stat.S_ISREG)

    def holds_folder(self, path: str) -> bool:
        """Return whether a path leads to a folder in the project or in the root."""
        return _is_in_project_or_root(path, self.project, self.home, stat.S_ISDIR)

    def paths_in(self, texts: Iterable[str]) -> list[str]:
        """Return the paths, below the working directory, that these strings may name."""
        return [os.path.join(self.folder, part) for text in texts for part in _split_names(text)]


def _add_program_files(
    found: DecidingFiles, program: Program, path: str, project: str, environ: Mapping[str, str]
) -> None:
    """Add the project files that the program at `path` runs or loads."""
    root, _, command, args, cwd, _, variables = program
    home = os.path.join(project, root)
    start = _StartPlace(project, home, os.path.join(home, cwd))
    argument_paths = start.paths_in(args)
    set_to = start.paths_in({_insert_variables(text, environ) for text in variables})
    _add_named_paths(found, start, [path, *argument_paths], set_to)
    scripts = [each for each in (path, *argument_paths) if start.holds_file(each)]
    # Another program may start them: `env npx`, `nice make`.
    started = {os.path.splitext(os.path.basename(word))[0] for word in (command, *args)}
    runs_code = (
        bool(scripts) or _has_startable_folder(argument_paths) or any(map(_CODE.match, args))
    )
    if runs_code or started & _LAUNCHERS:
        _add_script_folders(found, start, scripts, _is_loaded)
    elif started & _FETCHERS:
        _add_script_folders(found, start, scripts, _is_manifest)
    _add_packages_of(found, start, path)
    _add_run_modules(found, start, argument_paths, args)


def _has_startable_folder(paths: Iterable[str]) -> bool:
    """Return whether one of these paths is a folder that can be started as a program."""
    return any(os.path.isfile(os.path.join(each, name)) for each in paths for name in _STARTED)


def _add_run_modules(
    files: DecidingFiles, start: _StartPlace, argument_paths: list[str], args: Sequence[str]
) -> None:
    """Add the packages that Python runs as programs."""
    # It runs a folder that holds this file as it runs a module.
    run = [each for each in argument_paths if os.path.isfile(os.path.join(each, "__main__.py"))]
    for named in (
        *run,
        *(os.path.join(start.folder, module) for module in _find_run_modules(args)),
    ):
        files.add_file(f"{named}.py")
        _add_package(files, named)


def _add_named_paths(
    files: DecidingFiles, start: _StartPlace, argument_paths: list[str], variable_paths: list[str]
) -> None:
    """Add the paths that a command names in its arguments and variables.

    A path without an ending also matches files with each known ending.
    """
    named = [*argument_paths, *variable_paths]
    short = [each for each in named[1:] if _may_lack_ending(each, start.folder)]
    for each in (*named, *(each + ending for each in short for ending in _RUN)):
        if start.holds_file(each):
            files.add_file(each)
    for folder in variable_paths:
        if start.holds_folder(folder):
            files.add_tree(folder, _can_be_run, _is_of_project, installed=False)


def _add_script_folders(
    files: DecidingFiles, start: _StartPlace, scripts: list[str], selects: Callable[[str], bool]
) -> None:
    """Add the files that `selects` selects in the folders from which a program loads files.

    These are the root of the service, the working directory, and the folder of each script and of
    its target if it is a link."""
    folders = {start.home, start.folder}
    for script in scripts:
        folders |= {os.path.dirname(script), os.path.dirname(os.path.realpath(script))}
    for folder in sorted(folders):
        if start.holds_folder(folder):
            files.add_tree(folder, selects, _is_of_project, installed=False)


def _add_packages_of(files: DecidingFiles, start: _StartPlace, path: str) -> None:
    """Add the files that Python runs when it starts, from the installed packages of a virtual
    environment."""
    for folder in _find_package_folders(path):
        if start.holds_folder(folder):
            files.folders.add(folder)
            for name in filter(_is_run_at_start, os.listdir(folder)):
                files.add_file(os.path.join(folder, name))


def _is_read(path: str) -> bool:
    """Return whether a command reads specs in a file or folder of this name."""
    name = os.path.basename(path)
    return name[0] != "." and name != BYTECODE


def _is_imported(path: str) -> bool:
    """Return whether Python can import a file, by its ending."""
    return path.endswith(_IMPORTED)


def _is_loaded(path: str) -> bool:
    """Return whether a program may load a file, by its name."""
    return path.endswith(_RUN) or _is_manifest(path)


def _is_manifest(path: str) -> bool:
    """Return whether a file declares the code that a program starts or downloads."""
    return os.path.basename(path) in _MANIFESTS


def _find_package_folders(program: str) -> Iterator[str]:
    """Yield the folders of installed packages in the virtual environment that contains a
    program."""
    environment = os.path.dirname(os.path.dirname(program))
    if program and os.path.isfile(os.path.join(environment, "pyvenv.cfg")):
        for library in ("lib/python*", "lib64/python*", "Lib"):
            yield from glob(os.path.join(escape(environment), library, "site-packages"))


def _is_run_at_start(name: str) -> bool:
    """Return whether Python runs a file of installed packages each time it starts."""
    return name.endswith(".pth") or name.startswith(("sitecustomize", "usercustomize"))


def _is_not_bytecode(name: str) -> bool:
    """Return whether a folder does not contain compiled Python."""
    return name != BYTECODE


def _is_of_project(name: str) -> bool:
    """Return whether a folder belongs to the project: it is not hidden, and no package manager installed
    it."""
    return name[0] != "." and name not in (BYTECODE, "node_modules")


def _contains_module(root: str, module: str) -> bool:
    """Return whether a root contains a file or folder that Python would import under this module name."""
    top = module.partition(".")[0]
    try:
        return any(name.partition(".")[0] == top for name in os.listdir(root))
    except OSError:
        return False


def _can_be_run(path: str) -> bool:
    """Return whether a program may load or start a file, because of its ending or because it is
    executable."""
    if path.endswith(_RUN) or ".so." in os.path.basename(path):
        return True
    try:
        return sys.platform != "win32" and bool(os.stat(path).st_mode & 0o111)
    except OSError:
        return False


def _find_program(command: str, place: str, own_path: str, environ: Mapping[str, str]) -> str:
    """Return the path of a program; empty if it is not found."""
    import shutil

    search = _insert_variables(own_path, environ)
    named = os.path.join(place, command) if os.path.dirname(command) else command
    return shutil.which(named, path=search or environ.get("PATH", os.defpath)) or ""


def _find_run_modules(args: Sequence[str]) -> Iterator[str]:
    """Yield the modules that `-m NAME` and `-mNAME` name, as Python interprets these arguments."""
    for number, argument in enumerate(args):
        if argument == "-m":
            yield from (name.partition(".")[0] for name in args[number + 1 : number + 2])
        elif argument.startswith("-m"):
            yield argument[2:].partition(".")[0]


def _insert_variables(text: str, environ: Mapping[str, str]) -> str:
    """Return a string with the values of variables inserted."""
    return PLACEHOLDER.sub(lambda match: environ.get(match[1], ""), text)


def _split_names(text: str) -> set[str]:
    """Return the parts of an argument or variable that may name a file.

    They are the whole text, the parts between blanks, the entries of a list of paths, and the part
    after `=`. Each is also included without quotes, without `file://`, and without the letter of an
    option."""
    parts = {text, *(part for separator in _SEPARATORS for part in re.split(separator, text))}
    parts |= {part.strip("'\"") for part in parts}
    parts |= {part.partition("=")[2] for part in parts}
    parts |= {part[2:] for part in parts if re.match("-[A-Za-z]", part)}
    parts |= {part.removeprefix("file://") for part in parts}
    return set(filter(_may_be_path, parts))


def _may_be_path(text: str) -> bool:
    """Return whether a string can be a path."""
    return bool(text) and "\0" not in text and len(text) < _LONGEST


def _may_lack_ending(path: str, place: str) -> bool:
    """Return whether a loader may append an ending to a path. The path is in a folder below `place` (such
    as `./hook`) and has no ending."""
    return not os.path.splitext(path)[1] and "/" in path[len(place) + 1 :]


def _is_in_project_or_root(
    path: str, project: str, root: str, is_kind: Callable[[int], bool]
) -> bool:
    """Return whether a path leads to a file of this kind in the project or in the root of the service."""
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
