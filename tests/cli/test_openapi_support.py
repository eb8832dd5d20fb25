"""The page of what is supported of OpenAPI tells what is bound, and what is sent
(docs/reference/openapi-support.md).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.openapi_support import document, read_cases
from support.project import Project

from cogcli.base.api_documents.openapi import OpenApiDocument
from cogcli.protocols.http.open_files import OpenFiles
from cogcli.protocols.http.parts import parts_by_document
from cogcli.protocols.http.url import url_of

CASES = read_cases()
SENT = [case for case in CASES if "given" in case]
SERVER = "https://support.example"


def bind(project: Project, cases: list[dict[str, Any]], id: str) -> tuple[list[str], list[str]]:
    """The files and the notes of binding all operations of the cases."""
    project.write(f"{id}.json", json.dumps(document(cases)))
    words = ("new", "binding", id, "--from-openapi", f"{id}.json", "--all", "--keep-going")
    made = project.run(*words, "--json").assert_ok()
    return made.json["created"], [each["message"] for each in made.json["warnings"]]


def is_about(note: str, case: dict[str, Any]) -> bool:
    """Whether a note is about the operation of a case: its id, path or capability begins it."""
    words = note.replace(":", " ").replace(".", " ").replace("/", " ").split()
    return case["id"] in words


@pytest.mark.sampled(6)
def test_each_case_is_bound_noted_or_refused_as_the_page_says(project: Project) -> None:
    project.run("new", "project", ".").assert_ok()
    together = [case for case in CASES if "apart" not in case]
    apart = [case for case in CASES if "apart" in case]
    wrong = []
    for number, cases in enumerate((together, *([case] for case in apart))):
        created, notes = bind(project, cases, f"api{number}")
        for case in cases:
            own = [note for note in notes if is_about(note, case)]
            is_bound = any(case["id"] in path.replace("-", ".").split(".") for path in created)
            said = case.get("refused", case.get("note", ""))
            is_told = any(said in note for note in own) if said else True
            if is_bound == ("refused" in case) or not is_told:
                wrong.append((case["feature"], is_bound, own))
    assert wrong == []


@pytest.mark.parametrize("case", SENT, ids=[case["feature"] for case in SENT])
def test_what_is_given_is_sent_as_the_case_says(case: dict[str, Any]) -> None:
    operation = OpenApiDocument(document(CASES)).operation(case["id"], None)
    parts = parts_by_document(operation, case["given"])
    url = url_of(SERVER, parts.path, parts.path_values, parts.query)
    if "sends" in case:
        assert url == f"{SERVER}/{case['id']}{case['sends']}"
    assert parts.headers == case.get("headers", {})
    if "body" in case:
        assert bytes(parts.encoded_body(OpenFiles(frozenset(), 0)).data).decode() == case["body"]
