"""Every parser of foreign bytes answers, or refuses with a code; no input makes it raise anything else.

Work without end has no bound here: `faulthandler_timeout` ends the test that hangs.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from fuzzing import SECONDS, Target, bytes_of, json_values, mutated, texts_of, try_few, try_long
from hypothesis import strategies as st
from support.examples import LONG
from support.project import Project

from cogcli.agent.stores.knowledge_store import KnowledgeStore
from cogcli.agent.stores.memory_store import MemoryStore
from cogcli.app.settings.config import ConfigFile
from cogcli.base import inflate
from cogcli.base.api_documents import openapi, openrpc
from cogcli.base.api_documents.loader import parse_document
from cogcli.base.errors import CogcliError, ExpressionError
from cogcli.base.expressions import ExpressionFault, evaluate, read_expression
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.refs import MISSING
from cogcli.base.schema import patterns, validator
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.yaml import reader
from cogcli.episode.archive import format as archive_format
from cogcli.episode.archive.format import ArchiveFault
from cogcli.episode.archive.parcel import pack, unpack
from cogcli.episode.archive.reader import Archive
from cogcli.episode.archive.writer import ArchiveWriter, EpisodeBytes
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify
from cogcli.policy import jsonlogic
from cogcli.protocols.mcp.traffic import id_in, read_frame
from cogcli.sdk import Refused
from cogcli.specs.lock import read_locked_services

pytestmark = pytest.mark.sampled(4)

ROOT: Final = Path(__file__).resolve().parents[2]
SAMPLES: Final = ROOT / "docs/samples"
YAML_WORDS: Final = (
    "a: ", "- ", "\n", "  ", "{", "}", "[", "]", "&x ", "*x", "<<: ", "!!python/object:os.system ", "|\n", ">-\n", "'",
    '"', "\\", "# c", "---\n", "...\n", "%YAML 1.2\n", "? ", ": ", "~", "0o7", "1e999", ".inf", "2001-01-01",
    "\t", "\ufeff",
)  # fmt: skip
JSON_WORDS: Final = (
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"',
    "\\u",
    "d800",
    "1e400",
    "-0",
    "null",
    "true",
    "NaN",
    " ",
    "0.1",
)
TOML_WORDS: Final = (
    "a", ".", "=", "\n", "[", "]", "[[", "]]", "{", "}", '"""', "'''", '"', "'", "\\", "#", ",", "1979-05-27T07:32:00Z",
    "0x", "inf", "registry = ", "[model]\n", "[packs.pins]\n", "trust_level", "9" * 50,
)  # fmt: skip
SCHEMA_WORDS: Final = (
    "type", "object", "string", "array", "integer", "properties", "items", "pattern", "allOf", "anyOf", "oneOf", "not",
    "$ref", "#", "#/$defs/a", "$defs", "a", "enum", "const", "minLength", "required", "additionalProperties",
    "if", "then",
    "patternProperties", "uniqueItems", "multipleOf", "^(a+)+$", "$schema", "$dynamicRef", "$anchor", "prefixItems",
)  # fmt: skip
API_WORDS: Final = (
    "openapi", "3.1.0", "3.0.3", "openrpc", "1.3.2", "info", "title", "version", "paths", "/a/{b}", "get", "post",
    "parameters", "name", "in", "query", "path", "schema", "type", "string", "responses", "200", "content",
    "requestBody",
    "application/json", "operationId", "$ref", "#/components/schemas/A", "components", "schemas", "servers", "url",
    "security", "methods", "params", "result", "http://host/{x}", "variables", "default", "deprecated", "required",
)  # fmt: skip
REGEX_WORDS: Final = (
    "a", "(", ")", "[", "]", "^", "$", "*", "+", "?", "{2,9}", "{1000}", "|", "\\d", "\\p{L}", "\\u{1F600}",
    "(?=", "(?<n>",
    "\\k<n>", "\\1", ".", "-", "[^", "\\b", "(?:", "\\x41", "\\", "*?", "\\cA",
)  # fmt: skip
EXPRESSION_WORDS: Final = (
    "inputs.a", "vars.b", " == ", " != ", " and ", " or ", "not ", "(", ")", "[", "]", "len(", "null",
    "is null", " in ",
    "'x'", "1", "1.5", " + ", " * ", " ** ", "//", "%", ".upper()", "lambda", "__class__", "{", "}", ",",
    "[0]", "-", "if",
    "else", '"""', "\\", "\n", "9" * 40, "contains(", "lower(", "x" * 30,
)  # fmt: skip
LOGIC_WORDS: Final = (
    "var", "==", "!=", ">", "<", "and", "or", "!", "if", "in", "cat", "+", "-", "*", "/", "%", "map", "filter",
    "reduce",
    "all", "some", "none", "missing", "missing_some", "merge", "substr", "min", "max", "args.a", "facts.b",
    "input.x", "",
)  # fmt: skip
MCP_WORDS: Final = (
    "jsonrpc", "2.0", "id", "method", "params", "result", "error", "code", "message", "tools", "content",
    "type", "text",
    "structuredContent", "isError", "notifications/progress", "progressToken", "_meta", "inputRequests", "resultType",
)  # fmt: skip
MAIL_WORDS: Final = (
    "From: a@b\n", "To: ", "Subject: =?utf-8?B?", "?=", "\n\n", "\n", "Content-Type: ", "multipart/mixed; boundary=x\n",
    "--x\n", "--x--\n", "text/plain; charset=", "utf-7", "Content-Transfer-Encoding: base64\n", "quoted-printable",
    "message/rfc822\n", "Content-Disposition: attachment; filename*=utf-8''", "From a Mon Jan 1 00:00:00 2020\n",
    "Date: ", "<", ">", ";", '"', "(", ")", "a@b, ", "=", "%00", "Message-ID: <", "\r\n", " ",
)  # fmt: skip
HTML_WORDS: Final = (
    "<html>", "<body>", "<p>", "</p>", "<a href='", "'>", "<table>", "<tr>", "<td colspan=99999>", "<script>",
    "</script>",
    "<!--", "-->", "<![CDATA[", "&#x110000;", "&amp", "<svg>", "<style>", "<li>", "<div>", "</div>", "<title>",
    "x", "<",
)  # fmt: skip
LOG_WORDS: Final = (
    "2024-01-01T00:00:00Z ", "ERROR ", "INFO ", "[", "]", "{", '"level":"error"', "}", "\n",
    "Traceback (most recent call last):",
    "  at x", "Jan  1 00:00:00 ", "host app[1]: ", "127.0.0.1 - - [01/Jan/2024:00:00:00 +0000] ",
    '"GET / HTTP/1.1" 500 1',
    "1700000000", "99999-99-99", ",", "=", "msg=",
)  # fmt: skip


def _quietly(function: Callable[..., object], *arguments: object) -> object:
    """The answer of a parser, or None where it refuses with a code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except (CogcliError, DocumentFault, Refused, InvalidJson):
            return None


def _yaml(data: bytes) -> object:
    parsed = reader.parse(data, file="x.yaml")
    assert (parsed.value is None) == any(problem.severity == "E" for problem in parsed.problems)
    return parsed.value


def _json_file(data: bytes) -> object:
    return reader.parse_json(data, file="x.json").value


def _settings(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cogcli.toml")
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        found = ConfigFile(str(file), "cogcli.toml", project=True)
    assert all(problem.code == "config.key" for problem in found.problems)
    return found.values


def _pattern(case: tuple[str, str]) -> object:
    text, value = case
    if patterns.refusal(text):
        assert patterns.pattern_of(text) is None
    return _quietly(validator.errors, {"type": "string", "pattern": text}, value)


def _schema(case: tuple[Any, Any]) -> object:
    schema, value = case
    if len(json.dumps(case)) > 20_000:
        return None
    return [_quietly(validator.errors, schema, value), _quietly(validator.is_usable, schema)]


class _Described:
    """A service with a document."""

    kind, id, root, settings = "openapi", "x", "", {"spec_ref": "x.json"}


def _document(parse: Callable[[dict[str, Any]], object], data: bytes) -> object:
    document = _quietly(parse_document, data, "x")
    return _quietly(parse, document) if isinstance(document, dict) else None


def _frame(data: bytes) -> object:
    return [read_frame(data), id_in(data)]


def _expression(case: tuple[str, Any]) -> object:
    text, value = case
    try:
        expression = read_expression(text)
        return evaluate(expression, lambda reference: value if reference.segments else MISSING)
    except (ExpressionFault, ExpressionError):
        return None


def _rule(case: tuple[Any, Any]) -> object:
    source, data = case
    return jsonlogic.evaluate(
        jsonlogic.compile_rule(source), {"args": data, "facts": data, "input": data}
    )


@contextlib.contextmanager
def _file(data: bytes, name: str) -> Iterator[str]:
    """A file in an ordinary folder: shipped functions read no system folders."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield str(path)


def _official(module: str, function: str, name: str, data: bytes) -> object:
    from importlib import import_module

    with _file(data, name) as path:
        return _quietly(getattr(import_module(f"cogcli.official.{module}"), function), path)


def _text_function(module: str, function: str, text: str) -> object:
    from importlib import import_module

    return _quietly(getattr(import_module(f"cogcli.official.{module}"), function), text)


@cache
def _episode() -> dict[str, bytes]:
    """The files of a small sealed episode."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder)).demo()
        project.run("run", "demo.greet", "-p", "text=hi").assert_ok()
        files = [file for file in project.episode.rglob("*") if file.is_file()]
        return {str(file.relative_to(project.episode)): file.read_bytes() for file in files}


def _sealed(name: str, data: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder, "ep_01M85DSTAVA7HKSPPHQW4WE1NR")
        for each, content in {**_episode(), name: data}.items():
            file = directory / each
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        _quietly(lambda: list(Store(folder).ids()))
        return _quietly(verify, directory)


def _lock(data: bytes) -> object:
    with _file(data, "cogcli.lock.json") as path:
        return _quietly(read_locked_services, str(Path(path).parent))


@cache
def _database(store: type[KnowledgeStore] | type[MemoryStore]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.db")
        store(path).close()
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        return path.read_bytes()


def _store(store: type[KnowledgeStore] | type[MemoryStore], data: bytes) -> object:
    with _file(data, "x.db") as path:

        def read() -> object:
            opened = store(Path(path))
            try:
                return opened.snapshot() if isinstance(opened, KnowledgeStore) else None
            finally:
                opened.close()

        return _quietly(read)


def _image() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(buffer, "PNG")
    return buffer.getvalue()


def _sheet() -> bytes:
    from openpyxl import Workbook

    book, buffer = Workbook(), io.BytesIO()
    for row in (["a", "b"], [1, "x"], [2.5, None]):
        book.active.append(row)
    book.save(buffer)
    return buffer.getvalue()


def _parquet() -> bytes:
    import polars

    buffer = io.BytesIO()
    polars.DataFrame({"a": [1, 2, None], "b": ["x", "y", "z"]}).write_parquet(buffer)
    return buffer.getvalue()


def _video() -> bytes:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 32
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        container.mux(stream.encode())
    return buffer.getvalue()


@cache
def _repository() -> dict[str, bytes]:
    """The files of a repository with two commits, one in a pack and one as an object of its own."""
    from dulwich.objects import Commit, Tree
    from dulwich.repo import Repo

    def add_commit(repository: Repo, parents: list[bytes]) -> bytes:
        tree, commit = Tree(), Commit()
        commit.tree, commit.parents, commit.message = tree.id, parents, b"a change\n\nand why"
        commit.author = commit.committer = b"A <a@b.c>"
        commit.author_time = commit.commit_time = 1_700_000_000
        commit.author_timezone = commit.commit_timezone = 3600
        repository.object_store.add_object(tree)
        repository.object_store.add_object(commit)
        return commit.id

    with tempfile.TemporaryDirectory() as folder, Repo.init_bare(folder) as repository:
        first = add_commit(repository, [])
        repository.object_store.pack_loose_objects()
        repository.refs[b"refs/heads/master"] = add_commit(repository, [first])
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _history(case: tuple[str, bytes]) -> object:
    from cogcli.official import git

    name, data = case
    with tempfile.TemporaryDirectory() as folder:
        for each, content in {**_repository(), name: data}.items():
            file = Path(folder, each)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return _quietly(git.read_log, folder)


def _source(case: tuple[str, str]) -> object:
    from cogcli.official import code

    return _quietly(code.analyze_source, *case)


def _reply(case: tuple[bytes, str]) -> object:
    data, encoding = case
    with contextlib.suppress(inflate.DamagedContent, inflate.ContentTooLarge):
        return inflate.decompress([data[:7], data[7:]], encoding, 100_000)
    return None


DOCUMENTS: Final = (
    b'{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a/{b}":{"get":{"operationId":"g","parameters":'
    b'[{"name":"b","in":"path","required":true,"schema":{"$ref":"#/components/schemas/A"}}],"responses":{"200":{"description"'
    b':"d"}}}}},"components":{"schemas":{"A":{"type":"string"}}}}',
    b'{"openrpc":"1.3.2","info":{"title":"t","version":"1"},"methods":[{"name":"m","params":[{"name":"p","schema":{"type":'
    b'"string"}}],"result":{"name":"r","schema":{"type":"integer"}}}]}',
)
MAIL: Final = (
    b"From: a@b.c\nTo: d@e.f\nSubject: =?utf-8?Q?h=C3=A9?=\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nMIME-Version: 1.0\n"
    b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain; charset=utf-8\n\nhello\n--x\n"
    b"Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n"
    b"Content-Disposition: attachment; filename=a.pdf\n\n"
    b"JVBERi0=\n--x--\n"
)
WAV: Final = (
    b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\x08\0\0\0"
    + bytes(8)
)
CODE_WORDS: Final = (
    "def f(a):\n", "    return ", "class A:\n", "if ", "else:\n", "for x in y:\n", "lambda: ", "(", ")", "[", "]", "{",
    "}", '"""', "f'{", "\\\n", "#", "//", "/*", "*/", "function f() ", "=> ", ";", "\n", "\t", "0x", "1e999", "async ",
    "match x:\n", "case _:\n", "\0", "not " * 50, "-" * 200, "(" * 200,
)  # fmt: skip
LICENCE_WORDS: Final = (
    "License: ", "Files: *\n", "Copyright: ", "MIT", "GPL-3+", " or ", " and ", " with ", "exception", "\n\n", "\n .\n",
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n", "Apache-2.0", "(", ")", "not ",
)  # fmt: skip
LOCK: Final = (
    b'{"schema":"cogcli.lock/1","services":{"s":{"tools":{"t":"sha256:' + b"0" * 64 + b'"}}}}'
)


def _archive(data: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "a.cogarchive"
        path.write_bytes(data)
        with contextlib.suppress(CogcliError), Archive.open(path) as archive:
            return [archive.read_episode(episode_id) for episode_id in archive.episode_ids()]
    return None


PARCEL_BATCH: Final = "ba_" + "0" * 26
PARCEL_EPISODE: Final = "ep_01HF7YAT00000000000000000A"
PARCEL_BLOB: Final = b"[]"
PARCEL_FILES: Final = {"events.jsonl": b'{"seq":0}\n', "manifest.json": b"{}\n"}


def _parcel(data: bytes) -> object:
    """The episode of a parcel. Its blobs have the names of their contents, and all sizes are those of the parcel."""
    try:
        episode = unpack(data, PARCEL_EPISODE, batch=PARCEL_BATCH)
    except ArchiveFault:
        return None
    assert all(sha256(blob).hexdigest() == name for name, blob in episode.blobs.items())
    assert episode.files.keys() <= set(archive_format.ARCHIVED_FILES)
    return episode.files, episode.blobs


def _packed() -> bytes:
    blobs = {sha256(PARCEL_BLOB).hexdigest(): PARCEL_BLOB}
    return pack(PARCEL_EPISODE, EpisodeBytes(PARCEL_FILES, blobs), batch=PARCEL_BATCH, line=1)


def _episode_content() -> bytes:
    sizes = {sha256(PARCEL_BLOB).hexdigest(): len(PARCEL_BLOB)}
    return archive_format.encode_episode(PARCEL_FILES, sizes)


def _summed_parcel(records: list[tuple[bytes, bytes, bytes, int]]) -> bytes:
    """A parcel of records (kind, name, content, bytes to lie by), whose checksums are right."""
    header = archive_format.Header(PARCEL_BATCH, b"")
    base, deflater = archive_format.sum_base(header), archive_format.Deflater(b"")
    parts = [header.line]
    for kind, name, content, lie in records:
        stored, size = deflater.deflate(content), max(0, len(content) + lie)
        parts.append(archive_format.encode_record(base, kind, name, stored, size))
    return b"".join(parts)


def _summed_parcels() -> st.SearchStrategy[bytes]:
    """Parcels whose checksums are right: what a hostile worker sends."""
    names = [
        archive_format.key_of_episode(PARCEL_EPISODE)[1:],
        archive_format.key_of_episode("ep_01HF7YAT00000000000000000B")[1:],
        sha256(PARCEL_BLOB).digest(),
        bytes(32),
        b"\xff" * 32,
    ]
    contents = st.one_of(
        mutated([_episode_content()], [b'"files"', b'"blobs"', b"../x", b"9" * 20]),
        st.just(_episode_content()),
        st.just(PARCEL_BLOB),
        st.binary(max_size=20),
        st.just(bytes(200_000)),
    )
    lies = st.sampled_from([0, 0, 0, 1, -1, archive_format.INFLATED - 200_000, 2**31])
    kinds = st.sampled_from([archive_format.EPISODE, archive_format.BLOB, archive_format.INDEX])
    record = st.tuples(kinds, st.sampled_from(names), contents, lies)
    blob = st.just((archive_format.BLOB, names[2], PARCEL_BLOB, 0))
    episode = st.tuples(
        st.just(archive_format.EPISODE), st.just(names[0]), contents, st.sampled_from([0, 0, 1])
    )
    good_blob_first = st.tuples(blob, episode).map(list)
    return st.one_of(st.lists(record, max_size=5), good_blob_first).map(_summed_parcel)


@cache
def _archived() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "a.cogarchive"
        with ArchiveWriter(path) as writer:
            files = {"events.jsonl": b'{"seq":0}\n', "manifest.json": b"{}\n"}
            writer.append("ep_01HF7YAT00000000000000000A", EpisodeBytes(files, {"a" * 64: b"[]"}))
        return path.read_bytes()


def _targets() -> dict[str, Target]:
    def document(parse: Callable[[dict[str, Any]], object]) -> Target:
        whole = json_values(API_WORDS, 40).map(lambda value: json.dumps(value).encode())
        return Target(
            st.one_of(mutated(DOCUMENTS, [word.encode() for word in API_WORDS]), whole),
            partial(_document, parse),
        )

    return {
        "strict YAML": Target(bytes_of(YAML_WORDS), _yaml),
        "strict JSON": Target(bytes_of(JSON_WORDS), lambda data: _quietly(loads, data)),
        "JSON files": Target(bytes_of(JSON_WORDS), _json_file),
        "archives": Target(
            mutated((_archived(),), [b"EPIS", b"BLOB", b"INDX", b"cogindex", bytes(32)]), _archive
        ),
        "parcels": Target(
            st.one_of(mutated((_packed(),), [b"EPIS", b"BLOB", bytes(32)]), _summed_parcels()),
            _parcel,
        ),
        "settings": Target(texts_of(TOML_WORDS), _settings),
        "patterns": Target(st.tuples(texts_of(REGEX_WORDS, 15), st.text(max_size=40)), _pattern),
        "schemas": Target(
            st.tuples(json_values(SCHEMA_WORDS), json_values(SCHEMA_WORDS, 10)), _schema
        ),
        "OpenAPI": document(openapi.OpenApiDocument),
        "OpenRPC": document(openrpc.OpenRpcDocument),
        "MCP messages": Target(
            st.one_of(
                bytes_of(JSON_WORDS),
                json_values(MCP_WORDS).map(lambda value: json.dumps(value).encode()),
            ),
            _frame,
        ),
        "mail": Target(
            st.one_of(mutated([MAIL]), bytes_of(MAIL_WORDS)),
            partial(_official, "email", "read_mailbox", "x.eml"),
        ),
        "HTML": Target(texts_of(HTML_WORDS), partial(_text_function, "web", "extract_content")),
        "markup": Target(texts_of(HTML_WORDS), partial(_text_function, "markup", "extract_body")),
        "logs of others": Target(texts_of(LOG_WORDS), partial(_text_function, "logs", "parse_log")),
        "PDF": Target(
            mutated([(SAMPLES / "trial-report.pdf").read_bytes()]),
            partial(_official, "pdf", "read_pdf", "x.pdf"),
        ),
        "images": Target(mutated([_image()]), partial(_official, "image", "check_file", "x.png")),
        "sheets": Target(mutated([_sheet()]), partial(_official, "sheets", "read_sheet", "x.xlsx")),
        "tables": Target(
            mutated([(SAMPLES / "arrivals.csv").read_bytes()], [b'"', b",", b";", b"\r"]),
            partial(_official, "sheets", "read_sheet", "x.csv"),
        ),
        "Parquet": Target(
            st.deferred(lambda: mutated([_parquet()])),
            partial(_official, "sheets", "read_sheet", "x.parquet"),
        ),
        "videos": Target(
            st.deferred(lambda: mutated([_video()])),
            partial(_official, "video", "extract_frames", "x.mp4"),
        ),
        "audio": Target(mutated([WAV]), partial(_official, "audio", "check_file", "x.wav")),
        "Git": Target(
            st.deferred(
                lambda: st.one_of(
                    st.tuples(st.just(name), mutated([data]))
                    for name, data in _repository().items()
                )
            ),
            _history,
        ),
        "source code": Target(
            st.tuples(texts_of(CODE_WORDS), st.sampled_from(["python", "javascript", "java", "c"])),
            _source,
        ),
        "licences": Target(
            texts_of(LICENCE_WORDS), partial(_text_function, "licences", "detect_licence")
        ),
        "compressed replies": Target(
            st.tuples(
                mutated([gzip.compress(b"x" * 50_000), zlib.compress(b"{}" * 99)]),
                st.sampled_from(["gzip", "deflate", "identity", "br"]),
            ),
            _reply,
        ),
        "logs of episodes": Target(
            st.deferred(lambda: mutated([_episode()["events.jsonl"]])),
            partial(_sealed, "events.jsonl"),
        ),
        "manifests": Target(
            st.deferred(lambda: mutated([_episode()["manifest.json"]])),
            partial(_sealed, "manifest.json"),
        ),
        "checkpoints": Target(
            st.deferred(lambda: mutated([_episode()["checkpoint.jsonl"]])),
            partial(_sealed, "checkpoint.jsonl"),
        ),
        "locks": Target(st.one_of(mutated([LOCK]), bytes_of(JSON_WORDS)), _lock),
        "expressions": Target(
            st.tuples(texts_of(EXPRESSION_WORDS, 25), json_values(("a", "b"), 6)), _expression
        ),
        "JsonLogic": Target(
            st.tuples(json_values(LOGIC_WORDS), json_values(("a", "b", "x"), 8)), _rule
        ),
        "knowledge": Target(
            st.deferred(lambda: mutated([_database(KnowledgeStore)])),
            partial(_store, KnowledgeStore),
        ),
        "memory": Target(
            st.deferred(lambda: mutated([_database(MemoryStore)])), partial(_store, MemoryStore)
        ),
    }


TARGETS: Final = _targets()


@pytest.fixture(autouse=True)
def ordinary_temporary(ordinary_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shipped functions read documents in ordinary folders alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(ordinary_path))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", TARGETS)
def test_a_few_inputs_are_answered_or_refused_with_a_code(name: str) -> None:
    try_few(TARGETS[name])


@pytest.mark.slow
@pytest.mark.skipif(
    not LONG, reason=f"{SECONDS:g} s for each target: COGCLI_LONG_TESTS=1, or check.py --long"
)
@pytest.mark.parametrize("name", TARGETS)
def test_many_inputs_are_answered_or_refused_with_a_code(name: str) -> None:
    try_long(TARGETS[name])
