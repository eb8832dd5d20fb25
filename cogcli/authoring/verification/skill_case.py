"""Test cases of skills, as declared in their files (docs/reference/test-case.md#keys)."""

from __future__ import annotations

import os

from cogcli.base.errors import OK
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath, Problem
from cogcli.base.source_lines import hide_secrets
from cogcli.base.yaml.positions import YamlPositions
from cogcli.base.yaml.reader import read_file
from cogcli.declarations.case_spec import CaseSpec
from cogcli.declarations.field import place
from cogcli.protocols.exchange_checks import Check, Frame, NotRunnable
from cogcli.specs.case_shape import list_cases
from cogcli.specs.layout import CASES, SKILL_FILE
from cogcli.specs.protocol import Protocols
from cogcli.specs.shapes import check_file


class CaseSource(NamedTuple):
    """The file of a case: its path, its display path, and its text with positions."""

    path: str
    shown: str
    text: str
    places: YamlPositions

    def line(self, number: int) -> str:
        """Return a line by its number from 1; empty beyond the last."""
        return "".join(self.text.split("\n")[number - 1 : number]).rstrip("\r")

    @property
    def folder(self) -> str:
        """The folder to which the paths in its cases are relative."""
        return os.path.dirname(self.path)


class SkillCase(CaseSpec):
    """A case in a file."""

    id: str = place(default="")
    """The skill's id and the name of the file, with the number of the case if there are several."""
    skill_id: str = place(default="")
    source: CaseSource = place(default=None)
    at: KeyPath = place(default=())

    def with_values(self, **members: object) -> SkillCase:
        """Return the case with other values of some keys."""
        places = {name: getattr(self, name) for name in ("id", "skill_id", "source", "at")}
        return SkillCase.of({**self.json, **members}, **places)

    @property
    def ends_well(self) -> bool:
        """Whether the case expects a successful run."""
        return self.expect.exit_code == OK

    def frame_of(self, *path: str | int) -> Frame:
        """Return the source line of the value at a path of the case."""
        span = self.source.places.value((*self.at, *path))
        line = self.source.line(span.line)
        one_line = span.line == span.end_line
        return Frame(
            span.line,
            hide_secrets(line),
            span.column,
            max(1, span.end_column - span.column if one_line else 1),
        )


class CaseFault(NotRunnable):
    """The error for a case that cannot be run as written. None of its calls was made."""

    def __init__(
        self, case: SkillCase, code: str, path: KeyPath, message: str, hint: str = ""
    ) -> None:
        span = case.source.places.key((*case.at, *path))
        pointer = "/" + "/".join(map(str, (*case.at, *path)))
        place = (case.source.shown, span.line, span.column)
        problem = Problem(code, "E", *place, pointer, message, hint)
        frame = Frame(span.line, hide_secrets(case.source.line(span.line)), span.column, 1)
        check = Check("the case can be run", False, problem.summary_line, frame)
        super().__init__(problem.summary_line, code, check=check)


class CaseFileContent(NamedTuple):
    """The cases of one file; none if the file has problems."""

    cases: tuple[SkillCase, ...]
    problems: tuple[Problem, ...]


def skill_folder(path: str) -> str:
    """Return the folder of the skill next to a case file; empty if the folder has no skill."""
    folder = os.path.dirname(os.path.dirname(path))
    beside = os.path.basename(os.path.dirname(path)) == CASES
    return folder if beside and os.path.isfile(os.path.join(folder, SKILL_FILE)) else ""


def read_cases(
    path: str, display_path: str, skill_id: str, protocols: Protocols
) -> CaseFileContent:
    """Return the cases in a file, and its problems."""
    data, parsed = read_file(path, file=display_path)
    if parsed.value is None:
        return CaseFileContent((), tuple(parsed.problems))
    checked = check_file("case", parsed.value, parsed.places, display_path, protocols)
    if checked.raw is None:
        return CaseFileContent((), tuple(checked.problems))
    source = CaseSource(path, display_path, data.decode("utf-8-sig"), parsed.places)
    stem = os.path.basename(path).removesuffix(".yaml")
    cases = [
        SkillCase.of(
            raw,
            id=f"{skill_id}/{stem}{f'.{at[-1] + 1}' if at else ''}",
            skill_id=skill_id,
            source=source,
            at=at,
        )
        for at, raw in list_cases(checked.raw)
    ]
    return CaseFileContent(tuple(cases), ())
