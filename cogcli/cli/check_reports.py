"""The problems of `validate` in the formats of `--report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.cli.code_frame import Sources

if TYPE_CHECKING:
    from cogcli.app.checks import RegistryCheck
    from cogcli.core.problems import Problem

KINDS: Final = ("junit", "sarif", "json", "md", "github")


def add_end_columns(checked: RegistryCheck, sources: Sources) -> list[tuple[Problem, int]]:
    """The check, each problem with the column after its token."""
    return [(p, sources.end(p.file, p.line, p.column)) for p in checked.problems]


def junit_of(checked: RegistryCheck, *, strict: bool) -> str:
    """A case per file; problems that do not fail the check are notes."""
    from cogcli.cli.render_error import concise
    from cogcli.report.junit import Case, JunitFailure, junit

    def case(file: str, kind: str) -> Case:
        own = [problem for problem in checked.problems if problem.file == file]
        failing = [problem for problem in own if strict or problem.severity == "E"]
        notes = [concise(problem, as_error=False) for problem in own if problem not in failing]
        failures = [JunitFailure(p.code, p.message, concise(p, as_error=False)) for p in failing]
        return Case(kind, file or "registry", tuple(failures), tuple(notes), file)

    cases = [case(file, kind) for file, kind in checked.files.items()]
    return junit("cogcli validate", cases, seconds=checked.seconds)


def sarif_of(checked: RegistryCheck, sources: Sources) -> str:
    """Every problem as a result, its code's page as the rule."""
    import json

    from cogcli import __version__
    from cogcli.app.explain import pages
    from cogcli.report.sarif import sarif

    rules = {code: (meaning, cure) for code, (meaning, _, cure) in pages().items()}
    document = sarif(add_end_columns(checked, sources), rules, version=__version__)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def github_of(checked: RegistryCheck, sources: Sources) -> str:
    """Annotations, a line each."""
    from cogcli.report.github import workflow_commands

    return "".join(f"{line}\n" for line in workflow_commands(add_end_columns(checked, sources)))


def markdown_of(checked: RegistryCheck, *, limit: int | None = None) -> str:
    """A heading and a table."""
    from cogcli.report.problem_table import problem_table

    return f"# cogcli validate\n\n{problem_table(checked.problems, limit=limit)}"
