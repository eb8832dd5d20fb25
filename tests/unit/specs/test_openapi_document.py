"""OpenAPI documents: which operation a binding means, and what that operation takes and gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from document_service import service_with

from cogcli.base.api_documents.loader import parse_files, read_document
from cogcli.base.api_documents.openapi import OpenApiDocument, load_openapi
from cogcli.base.json_pointer import DocumentFault
from cogcli.declarations.service_spec import Service
from cogcli.specs.request_locations import RequestLocation, locate_keys

NOTES = """
openapi: 3.1.0
info: {title: Notes, version: "1"}
servers:
  - {url: /relative}
  - {url: "https://{region}.notes.example/api", variables: {region: {default: eu}}}
security: [{token: []}]
paths:
  /notes:
    get:
      operationId: listNotes
      parameters:
        - {name: tag, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: session, in: cookie, schema: {type: string}}
        - {name: Accept, in: header, schema: {type: string}}
      responses: {"200": {content: {application/json: {schema: {type: array}}}}}
    post:
      operationId: addNote
      deprecated: true
      security: [{key: []}, {token: [], key: []}, {}]
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Note"}}
      responses:
        "201": {content: {application/json; charset=utf-8: {schema: {$ref: "#/components/schemas/Note"}}}}
        4xx: {description: refused}
        default: {content: {text/html: {}}}
  /notes/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
    get:
      operationId: getNote
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {$ref: "#/components/parameters/Lang"}
      responses: {"200": {description: ok}}
    put:
      parameters: [{name: text, in: query, schema: {type: string}}]
      requestBody: {content: {application/merge-patch+json: {schema: {$ref: "#/components/schemas/Note"}}}}
      responses: {"204": {description: done}}
    options: {operationId: askNote, responses: {}}
  /upload:
    post:
      requestBody: {content: {multipart/form-data: {}}}
      responses: {}
components:
  parameters:
    Lang: {name: lang, in: query, schema: {type: string}, deprecated: true}
  securitySchemes:
    token: {type: http, scheme: bearer}
    key: {type: apiKey, in: header, name: X-Key}
  schemas:
    Note:
      type: object
      required: [id, text]
      properties:
        id: {type: string, readOnly: true}
        text: {type: string}
        parent: {$ref: "#/components/schemas/Note"}
"""


@pytest.fixture
def notes(tmp_path: Path) -> OpenApiDocument:
    document = load_openapi(service_with(tmp_path, NOTES))
    assert document is not None
    return document


def fault(tmp_path: Path, text: str, name: str = "api.yaml") -> DocumentFault:
    with pytest.raises(DocumentFault) as caught:
        load_openapi(service_with(tmp_path, text, name=name))
    return caught.value


def test_a_service_without_a_document_has_none() -> None:
    assert load_openapi(Service(id="s", kind="openapi", root="/nowhere")) is None


def test_the_only_absolute_server_counts_its_variables_at_their_defaults(
    notes: OpenApiDocument,
) -> None:
    assert notes.server == "https://eu.notes.example/api"


def test_of_several_absolute_servers_none_is_chosen(tmp_path: Path) -> None:
    more = NOTES.replace("{url: /relative}", "{url: 'http://a.example'}")
    document = load_openapi(service_with(tmp_path, more))
    assert document is not None
    assert document.server is None


@pytest.mark.parametrize("name", ["getNote", "notes/{id}", "/notes/{id}"])
def test_an_operation_is_named_by_id_or_by_path(notes: OpenApiDocument, name: str) -> None:
    found = notes.operation(name, "GET")
    assert (found.id, found.method, found.path) == ("getNote", "GET", "/notes/{id}")


def test_the_method_of_a_path_is_the_given_one_else_the_only_one_else_post(
    notes: OpenApiDocument,
) -> None:
    assert notes.operation("/notes", None).id == "addNote"
    assert notes.operation("/notes", "GET").id == "listNotes"
    assert notes.operation("upload", None).method == "POST"


@pytest.mark.parametrize(
    ("name", "method", "code", "said"),
    [
        ("getNotes", None, "wire.operation", "`getNote`"),
        ("/note", None, "wire.operation", "`/notes`"),
        ("getNote", "POST", "wire.method", "remove metadata.method"),
        ("/notes", "DELETE", "wire.method", "metadata.method: GET"),
        ("/notes/{id}", None, "wire.method", "metadata.method: GET"),
        ("askNote", None, "wire.method", "choose one of GET"),
    ],
)
def test_a_wrong_operation_is_told_with_what_to_write(
    notes: OpenApiDocument, name: str, method: str | None, code: str, said: str
) -> None:
    with pytest.raises(DocumentFault) as caught:
        notes.operation(name, method)
    assert caught.value.code == code
    assert said in caught.value.hint


def test_parameters_of_the_operation_replace_those_of_the_path(notes: OpenApiDocument) -> None:
    parameters = {p.name: p for p in notes.operation("getNote", None).parameters}
    assert parameters["id"].schema == {"type": "string"}
    assert parameters["id"].required
    assert parameters["lang"].deprecated
    assert parameters["lang"].explode
    assert not parameters["lang"].required


def test_header_parameters_that_say_nothing_are_left_out_and_cookies_are_refused(
    notes: OpenApiDocument,
) -> None:
    parameters = {p.name: p for p in notes.operation("listNotes", None).parameters}
    assert set(parameters) == {"tag", "session"}
    assert not parameters["tag"].explode
    assert parameters["tag"].refused == ""
    assert parameters["session"].refused


def test_schemas_stand_alone_and_survive_cycles(notes: OpenApiDocument) -> None:
    body = notes.operation("addNote", None).body
    assert body is not None
    assert body.required
    note = body.schema["$defs"]["Note"]
    assert body.schema["$ref"] == note["properties"]["parent"]["$ref"] == "#/$defs/Note"


def test_what_only_the_service_sets_is_not_required_of_a_request(notes: OpenApiDocument) -> None:
    operation = notes.operation("addNote", None)
    assert operation.body is not None
    assert operation.body.schema["$defs"]["Note"]["required"] == ["text"]
    assert operation.responses["201"]["$defs"]["Note"]["required"] == ["id", "text"]


def test_a_reply_without_json_has_no_schema(notes: OpenApiDocument) -> None:
    responses = notes.operation("addNote", None).responses
    assert responses["4XX"] is None
    assert responses["default"] is None


def test_a_body_is_a_form_or_json_whose_suffixed_type_is_sent_as_such(
    notes: OpenApiDocument,
) -> None:
    upload, put = notes.operation("upload", None).body, notes.operation("/notes/{id}", "PUT").body
    assert upload is not None
    assert put is not None
    assert (upload.kind, upload.refused) == ("multipart", "")
    assert put.media_type == "application/merge-patch+json"


def test_security_holds_the_alternatives(notes: OpenApiDocument) -> None:
    assert [[s.header for s in one] for one in notes.operation("addNote", None).security] == [
        ["X-Key"],
        ["Authorization", "X-Key"],
        [],
    ]
    assert [[s.name for s in one] for one in notes.operation("getNote", None).security] == [
        ["token"]
    ]


def test_keys_of_a_request_have_places(notes: OpenApiDocument) -> None:
    get, add = notes.operation("getNote", None), notes.operation("addNote", None)
    assert locate_keys(["path.id", "lang"], get) == {
        "path.id": RequestLocation("path", "id"),
        "lang": RequestLocation("query", "lang"),
    }
    assert locate_keys(["text", "body.more"], add) == {
        "text": RequestLocation("body", "text"),
        "body.more": RequestLocation("body", "more"),
    }
    assert locate_keys(["body"], add) == {"body": RequestLocation("whole", "")}


@pytest.mark.parametrize(
    ("name", "method", "keys", "said"),
    [
        ("/notes/{id}", "PUT", ["text"], "query.text or body.text"),
        ("getNote", None, ["lnag"], "`lang`"),
        ("getNote", None, ["query.id"], "`path.id`"),
        ("getNote", None, ["body.id"], "takes no body"),
        ("listNotes", None, ["session"], "cookie are not sent"),
        ("addNote", None, ["body", "text"], "keep one"),
        ("getNote", None, ["id", "path.id"], "keep one"),
    ],
)
def test_a_key_without_one_clear_place_is_told(
    notes: OpenApiDocument, name: str, method: str | None, keys: list[str], said: str
) -> None:
    with pytest.raises(DocumentFault) as caught:
        locate_keys(keys, notes.operation(name, method))
    assert caught.value.code == "wire.parameter"
    assert said in f"{caught.value.message} {caught.value.hint}"


OLD = """
openapi: 3.0.3
info: {title: Old, version: "1"}
paths:
  /a:
    get:
      parameters:
        - name: n
          in: query
          schema: {type: integer, minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false}
      responses:
        "200":
          content:
            application/json:
              schema:
                type: object
                properties:
                  a: {type: string, nullable: true, example: x}
                  b: {$ref: "#/components/schemas/B", type: string}
components: {schemas: {B: {type: boolean}}}
"""


def test_the_dialect_of_3_0_is_translated(tmp_path: Path) -> None:
    document = load_openapi(service_with(tmp_path, OLD))
    assert document is not None
    operation = document.operation("a", None)
    assert operation.parameters[0].schema == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "maximum": 9,
    }
    assert operation.responses["200"]["properties"] == {
        "a": {"type": ["string", "null"], "examples": ["x"]},
        "b": {"$ref": "#/$defs/B"},
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("swagger: '2.0'", "swagger 2.0"),
        ("openapi: 4.0.0", "expected 3.0, 3.1 or 3.2"),
        ("openapi: 3.1.0\npaths: []", "`#/paths`"),
        ("openapi: 3.1.0\npaths: {/a: {get: 1}}", "`#/paths/~1a/get`"),
        (
            "openapi: 3.1.0\npaths: {/a: {get: {operationId: x}}, /b: {get: {operationId: x}}}",
            "`x` repeated",
        ),
        (
            "openapi: 3.1.0\npaths: {/a: {$ref: 'other.yaml#/a'}}",
            "`other.yaml`: the file does not exist",
        ),
        ("openapi: 3.1.0\npaths: {/a: {$ref: 'https://other.example/a'}}", "expected `#/...`"),
        ("openapi: 3.1.0\npaths: {/a: {$ref: '#/b'}}", "not there"),
        ("openapi: 3.1.0\nx-a: &a 1", "anchor"),
        ("openapi: 3.1.0\na: 1\na: 2", "line 3, column 1"),
        ("- openapi", "found a list"),
        ("", "empty"),
    ],
)
def test_an_unusable_document_is_told(tmp_path: Path, text: str, said: str) -> None:
    found = fault(tmp_path, text)
    assert found.code == "wire.document"
    assert said in found.located_message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("openapi: 4.0.0", (1, 10)),
        ("openapi: 3.1.0\npaths:\n  /a:\n    get: 1", (4, 10)),
        (
            "openapi: 3.1.0\npaths:\n  /a: {get: {operationId: x}}\n  /b: {get: {operationId: x}}",
            (4, 27),
        ),
        ("openapi: 3.1.0\npaths:\n  /a: {get: {responses: {'200': {$ref: '#/b'}}}}", (3, 40)),
        ("openapi: 3.1.0\npaths:\n  /a: {get: {parameters: [{}, {$ref: '#/b'}]}}", (3, 38)),
        ("openapi: 3.1.0\nx-a: &a 1", (2, 6)),
        ("- openapi", (1, 1)),
    ],
)
def test_what_is_wrong_has_its_place_in_the_document(
    tmp_path: Path, text: str, place: tuple[int, int]
) -> None:
    found = fault(tmp_path, text)
    assert (found.line, found.column) == place
    assert found.file == str((tmp_path / "docs/api.yaml").resolve())


def test_a_document_of_another_name_is_suggested(tmp_path: Path) -> None:
    service = service_with(tmp_path, NOTES, name="notes.yaml")
    with pytest.raises(DocumentFault) as caught:
        load_openapi(service.replace(settings={"spec_ref": "docs/note.json"}))
    assert caught.value.hint == "did you mean `docs/notes.yaml`?"


def test_a_circle_of_references_ends(tmp_path: Path) -> None:
    found = fault(
        tmp_path, "openapi: 3.1.0\npaths: {/a: {$ref: '#/x-b'}}\nx-b: {$ref: '#/paths/~1a'}"
    )
    assert "circle" in found.message


def test_names_and_data_are_no_references(tmp_path: Path) -> None:
    text = """
openapi: 3.1.0
paths: {}
components:
  schemas:
    A:
      properties: {$ref: {type: string}, example: {$ref: "#/components/schemas/B"}}
      example: {$ref: what it likes}
    B: {}
"""
    assert load_openapi(service_with(tmp_path, text)) is not None


@pytest.mark.parametrize(
    "data", ['{"openapi": "3.1.0", "a": NaN}', '{"a": 1, "a": 2}', "[" * 200, "{"]
)
def test_json_documents_are_read_strictly(tmp_path: Path, data: str) -> None:
    assert fault(tmp_path, data, "api.json").code == "wire.document"


def test_a_json_document_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    data = orjson.dumps({"openapi": "3.1.0", "paths": {}}).decode()
    for name in ("api.json", "api", "api.yaml"):
        assert load_openapi(service_with(tmp_path, data, name=name)) is not None


def test_a_document_of_more_than_64_mebibytes_is_refused(tmp_path: Path) -> None:
    assert (
        "at most 67,108,864" in fault(tmp_path, " " * (64 * 1024 * 1024) + "{}", "api.json").message
    )


def test_a_document_larger_than_a_spec_file_is_read(tmp_path: Path) -> None:
    paths = "".join(
        f"  /path/{n}/{'x' * 20}:\n    get: {{operationId: op{n}}}\n" for n in range(6000)
    )
    document = load_openapi(service_with(tmp_path, f"openapi: 3.1.0\npaths:\n{paths}"))
    assert document is not None
    assert document.operation("op5999", None).path.startswith("/path/5999/")


@pytest.mark.parametrize(
    "named", ["../outside.yaml", "docs/link.yaml", "https://x.example/api.yaml", "none.yaml"]
)
def test_a_document_is_inside_the_layer_of_its_service(tmp_path: Path, named: str) -> None:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text("openapi: 3.1.0\npaths: {}\n")
    os.symlink(tmp_path / "outside.yaml", root / "docs" / "link.yaml")
    with pytest.raises(DocumentFault) as caught:
        load_openapi(Service(id="s", kind="openapi", settings={"spec_ref": named}, root=str(root)))
    assert caught.value.code == "wire.document"
    assert named in caught.value.message


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("../../none.yaml", "does not exist"),
        ("../../../none.yaml", "is outside the layer"),
        ("link.yaml", "is outside the layer"),
    ],
)
def test_a_missing_document_is_told_from_one_outside_the_layer(
    tmp_path: Path, named: str, said: str
) -> None:
    root = tmp_path / "deep" / "root"
    (root / "services" / "local").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text("openapi: 3.1.0\npaths: {}\n")
    os.symlink(tmp_path / "outside.yaml", root / "link.yaml")
    file = str(root / "services" / "local" / "s.yaml")
    with pytest.raises(DocumentFault, match=f"document {named} {said}"):
        load_openapi(
            Service(id="s", kind="openapi", file=file, settings={"spec_ref": named}, root=str(root))
        )


def test_a_document_beside_the_service_file_is_preferred(tmp_path: Path) -> None:
    for folder, id in (("", "far"), ("services/local", "near")):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "api.yaml").write_text(
            f"openapi: 3.1.0\npaths: {{/a: {{get: {{operationId: {id}}}}}}}\n"
        )
    settings: dict[str, Any] = {"spec_ref": "api.yaml"}
    file = str(tmp_path / "services/local/s.yaml")
    near = load_openapi(
        Service(id="s", kind="openapi", settings=settings, root=str(tmp_path), file=file)
    )
    far = load_openapi(Service(id="s", kind="openapi", settings=settings, root=str(tmp_path)))
    assert near is not None
    assert far is not None
    assert (near.operation("a", None).id, far.operation("a", None).id) == ("near", "far")


def test_a_document_is_read_once_until_its_file_changes(tmp_path: Path) -> None:
    service = service_with(tmp_path, NOTES)
    first = load_openapi(service)
    assert load_openapi(service) is first
    service_with(tmp_path, NOTES + "\n# changed\n")
    assert load_openapi(service) is not first


def test_a_document_that_is_named_in_another_way_is_parsed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b'{"openapi": "3.1.0", "paths": {}}'
    (tmp_path / "api.json").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    first, _ = parse_files(data, "api.json", ".")
    assert read_document(str(tmp_path / "api.json"), str(tmp_path)) is first
