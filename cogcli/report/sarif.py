"""Problems as SARIF 2.1.0, for code scanning (docs/reference/command-line.md#reports)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible
from cogcli.declarations.value_types import Json
from cogcli.report.check_report import CheckReport

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT: Final = "SRCROOT"
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/!$&'()*+,;=@"
)


def sarif(report: CheckReport, rules: Mapping[str, tuple[str, str]], *, version: str) -> str:
    """Return a SARIF document of one run with a result per problem.

    `rules` contains the meaning and the cure of each code. The codes of the problems become the
    rules of the run."""
    codes = list(dict.fromkeys(problem.code for problem, _ in report.problems))
    driver = {
        "name": "cogcli",
        "semanticVersion": version,
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": rules.get(code, ("", ""))[0] or code},
                "help": {
                    "text": f"{rules.get(code, ('', ''))[1]} See `cogcli explain {code}`.".strip()
                },
            }
            for code in codes
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            _ROOT: {
                "description": {
                    "text": "the root of the repository, or the directory that was checked"
                }
            }
        },
        "results": list(_build_results(report, codes)),
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _build_results(report: CheckReport, codes: list[str]) -> Iterable[Json]:
    index = {code: number for number, code in enumerate(codes)}
    for problem, end in report.problems:
        result: Json = {
            "ruleId": problem.code,
            "ruleIndex": index[problem.code],
            "level": problem.severity_word(as_error=False),
            "message": {"text": visible(problem.summary_line)},
        }
        if problem.file:
            result["locations"] = [
                {"physicalLocation": _build_location(problem, report.place(problem.file), end)}
            ]
        if problem.file in report.shipped:
            result["properties"] = {"tags": ["shipped"]}
        yield result


def _build_location(problem: Problem, file: str, end: int) -> Json:
    place: Json = {"artifactLocation": _build_artifact(file)}
    if problem.line:
        region = {"startLine": problem.line, "startColumn": problem.column}
        place["region"] = region | ({"endColumn": end} if end else {})
    return place


def _build_artifact(file: str) -> dict[str, str]:
    """Return a relative URI. For a file outside the checked directory, return an absolute URI."""
    path = file.replace("\\", "/")
    uri = "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
        for byte in path.encode(errors="replace")
    )
    if path.startswith("/"):
        return {"uri": f"file://{uri}"}
    if path[1:3] == ":/":
        return {"uri": f"file:///{uri}"}
    return {"uri": uri, "uriBaseId": _ROOT}
