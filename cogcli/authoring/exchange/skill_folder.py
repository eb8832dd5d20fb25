"""Reading of a folder with a SKILL.md of another tool (docs/reference/protocols.md#skill-folders).

1. The skill has the name of the folder; its head is read under the rules of all spec files.
2. No symbolic link is followed, no special file is opened, each size is limited; a violation
   refuses the folder.
3. Nothing of it is run, and `allowed-tools` allows nothing."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from typing import Final

from cogcli.base.errors import USAGE, UsageError
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound
from cogcli.base.yaml.limits import Limits
from cogcli.base.yaml.reader import parse
from cogcli.declarations.value_types import Json
from cogcli.specs.unchecked import text_at

MAX_BODY: Final = 64 * 1024
MAX_HEAD: Final = 16 * 1024
MAX_FILES: Final = 200
MAX_ENTRIES: Final = 1000
"""The most entries of one directory, hidden ones included."""
MAX_FILE: Final = 1024 * 1024
MAX_BYTES: Final = 10 * 1024 * 1024
DEEPEST: Final = 8
LONGEST_DESCRIPTION: Final = 1024
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_+@(),=-][A-Za-z0-9._+@(),= -]{0,127}")
_FENCE: Final = re.compile(r"---[ \t]*")


class SkillFolder(NamedTuple):
    """The parsed contents of a skill's folder: the head, the body, and the other files by relative
    path.
    """

    name: str
    description: str
    head: Json
    body: str
    document: bytes
    files: dict[str, bytes]
    left_out: list[str]
    """The hidden files."""


def read_folder(path: str) -> SkillFolder:
    """Return the skill in a folder. Raise UsageError, or ProblemsFound for its SKILL.md."""
    folder = os.path.realpath(path)
    if not os.path.isdir(folder):
        raise _folder_error(path, "is not a directory")
    names = [
        name for name in ("SKILL.md", "skill.md") if os.path.lexists(os.path.join(folder, name))
    ]
    if not names:
        raise _folder_error(path, "holds no SKILL.md")
    file = f"{path.rstrip('/')}/{names[0]}"
    document = _read_file(os.path.join(folder, names[0]), file, MAX_HEAD + MAX_BODY)
    head, body = _parse_document(document, file)
    name, own = _head_text(head, "name", file, 64), os.path.basename(folder)
    if not _NAME.fullmatch(name):
        message = f"name `{name}` is not of small letters, digits and single hyphens"
        raise _problem_error(file, message, "rename the skill")
    if name != own:
        raise _problem_error(
            file, f"name `{name}` is not the folder's, `{own[:64]}`", "give both the same name"
        )
    description = _head_text(head, "description", file, LONGEST_DESCRIPTION)
    left_out: list[str] = []
    files = dict(_walk_files(folder, path, left_out))
    files.pop(names[0])
    return SkillFolder(name, description, head, body, document, files, left_out)


def _parse_document(document: bytes, file: str) -> tuple[Json, str]:
    lines = document.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
    end = _find_end_of_head(lines, file)
    head = parse(b"\n".join([b"#", *lines[1:end]]), file=file, limits=Limits(MAX_HEAD))
    if sum(map(len, lines[end + 1 :])) + len(lines) - end > MAX_BODY:
        message = f"the body has more than {MAX_BODY:,} bytes"
        raise _problem_error(file, message, "move parts of it to files next to it")
    # The body follows the rules for text in spec files; its lines keep their numbers.
    block = b"\n".join([b"#"] * end + [b"body: |2-"] + [b"  " + line for line in lines[end + 1 :]])
    read = parse(block, file=file, limits=Limits(4 * MAX_BODY))
    problems = head.problems + [p._replace(column=max(1, p.column - 2)) for p in read.problems]
    if problems:
        raise ProblemsFound(problems, unlisted=USAGE)
    body = b"\n".join(lines[end + 1 :]).decode().strip("\n").rstrip()
    if not body:
        raise _problem_error(file, "there is nothing below the head", "write what is to be done")
    return head.value or {}, body


def _find_end_of_head(lines: list[bytes], file: str) -> int:
    """Return the index of the second line of `---`. Raise ProblemsFound if the first is not line one."""
    fences = [
        n for n, line in enumerate(lines) if _FENCE.fullmatch(line.decode("utf-8", "replace"))
    ]
    if len(fences) < 2 or fences[0] != 0:
        message = "a SKILL.md begins with a head between two lines of `---`"
        raise _problem_error(file, message, "write name and description there")
    return fences[1]


def _head_text(head: Json, key: str, file: str, maximum: int) -> str:
    value = text_at(head, key) or ""
    if not value.strip():
        raise _problem_error(
            file, f"`{key}` is missing, or no text", f"write {key}: ... in the head"
        )
    if len(value) > maximum:
        message = f"`{key}` has {len(value):,} characters, at most {maximum:,} are allowed"
        raise _problem_error(file, message, "shorten it")
    return value.strip()


def _walk_files(
    folder: str, display_path: str, left_out: list[str], parent: str = "", depth: int = 0
) -> Iterator[tuple[str, bytes]]:
    """Yield the relative path and content of every file below a folder."""
    if depth > DEEPEST:
        raise _folder_error(display_path, f"is nested deeper than {DEEPEST}")
    count = total = 0
    for name, mode in _list_entries(os.path.join(folder, parent)):
        place = f"{parent}/{name}" if parent else name
        if stat.S_ISLNK(mode):
            raise _folder_error(f"{display_path}/{place}", "is a symbolic link")
        if name.startswith("."):
            left_out.append(place)
            continue
        if not _FILE_NAME.fullmatch(name):
            what = "has a name with other characters than letters, digits and ._-+ "
            raise _folder_error(f"{display_path}/{place}", what)
        found = (
            _walk_files(folder, display_path, left_out, place, depth + 1)
            if stat.S_ISDIR(mode)
            else iter(
                [
                    (
                        place,
                        _read_file(
                            os.path.join(folder, place), f"{display_path}/{place}", MAX_FILE
                        ),
                    )
                ]
            )
        )
        for inner, data in found:
            count, total = count + 1, total + len(data)
            if count > MAX_FILES:
                raise _folder_error(display_path, f"holds more than {MAX_FILES} files")
            if total > MAX_BYTES:
                raise _folder_error(display_path, f"holds more than {MAX_BYTES:,} bytes")
            yield inner, data


def _list_entries(folder: str) -> list[tuple[str, int]]:
    try:
        with os.scandir(folder) as found:
            some = list(islice(found, MAX_ENTRIES + 1))
            if len(some) > MAX_ENTRIES:
                raise _folder_error(folder, f"holds more than {MAX_ENTRIES:,} names")
            return sorted((entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in some)
    except OSError as error:
        raise _folder_error(folder, f"cannot be read: {error.strerror}") from error


def _read_file(path: str, display_path: str, limit: int) -> bytes:
    if os.path.islink(path):
        raise _folder_error(display_path, "is a symbolic link")
    try:
        return read_regular(path, limit=limit)
    except UnreadableFile as refused:
        raise _folder_error(display_path, refused.message) from refused


def _folder_error(path: str, fault: str) -> UsageError:
    return UsageError("usage.value", f"`{path}` {fault}", expected="a folder with a SKILL.md")


def _problem_error(file: str, message: str, hint: str) -> ProblemsFound:
    return ProblemsFound([Problem("usage.value", "E", file, 1, 1, "", message, hint)])
