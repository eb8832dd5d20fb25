"""Stdin, CSV and Parquet as the input of a batch, and tables as its output."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, make_counted, outcomes, rows, write_lines

from cogcli.scale.tables import read_cells

INPUTS = """{text: {type: string, required: true}, count: {type: integer}, exact: {type: number},
  sure: {type: boolean}, words: {type: array}}"""
ECHO = """
- {id: echo, uses: demo.echo, output: {seen: outputs.seen},
   input: {text: inputs.text, count: inputs.count, exact: inputs.exact, sure: inputs.sure, words: inputs.words}}
"""


@pytest.fixture
def echoing(project: Any) -> Any:
    """A project with a skill that returns its typed inputs."""
    project.services("def echo(**given):\n    return {'seen': given}\n")
    names = ("text", "count", "exact", "sure", "words")
    request = ", ".join(f"{name}: input.{name}" for name in names)
    project.capability(
        "demo.echo", "echo", inputs=INPUTS, outputs="{seen: {type: object, required: true}}",
        request=f"{{{request}}}", response="{seen: response.seen}",
    )  # fmt: skip
    project.skill("demo.echo", ECHO, inputs=INPUTS, outputs="{seen: {type: object}}")
    return project


def seen(project: Any) -> list[dict[str, Any]]:
    found = [row["outputs"]["seen"] for row in rows(project)]
    return [{name: value for name, value in each.items() if value is not None} for each in found]


def run_echo(project: Any, name: str, *flags: str) -> Any:
    return project.run("run", "demo.echo", "--batch", name, "-o", "out.jsonl", *flags)


def test_the_rows_of_a_csv_file_get_the_types_of_the_inputs(echoing: Any) -> None:
    text = 'text,count,exact,sure,words\n"a, ""b""",3,1.5,true,"[1, ""x""]"\nplain,,,,\n'
    echoing.write("in.csv", text)
    run_echo(echoing, "in.csv").assert_ok()
    assert seen(echoing) == [
        {"text": 'a, "b"', "count": 3, "exact": 1.5, "sure": True, "words": [1, "x"]},
        {"text": "plain"},
    ]
    lines = (batch_folder(echoing) / "input.jsonl").read_text().splitlines()
    assert lines[1] == '{"text":"plain"}'
    run_echo(echoing, "in.csv").assert_ok()
    assert len(echoing.episodes) == 2
    assert sorted(path.name for path in batch_folder(echoing).parent.iterdir()) == [
        batch_folder(echoing).name
    ]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("text,count\na,many\n", "input.type", 2),
        ("text,cuont\na,1\n", "input.unknown", 1),
        ("text,text\na,b\n", "input.file", 1),
        ("text\na,b\n", "input.file", 2),
        ('text\n"a\n', "input.file", 2),
        ("", "input.empty", None),
        ("text\n", "input.empty", None),
        ("count\n1\n", "input.missing", 2),
    ],
)
def test_what_is_wrong_in_a_csv_file_is_reported_with_its_line(
    echoing: Any, text: str, code: str, line: int | None
) -> None:
    echoing.write("in.csv", text)
    error = run_echo(echoing, "in.csv", "--json").assert_exit(2).json["error"]
    assert (error["code"], error.get("line") or None) == (code, line)
    assert echoing.episodes == []
    assert not list((echoing.root / ".cogcli/episodes/.batches").glob("*"))


def test_a_csv_file_in_another_encoding_is_refused(echoing: Any) -> None:
    echoing.write("in.csv", b"text\ncaf\xe9\n")
    error = run_echo(echoing, "in.csv", "--json").assert_exit(2).json["error"]
    assert error["code"] == "input.encoding"


def test_the_rows_of_a_parquet_file_keep_their_types(echoing: Any) -> None:
    polars = pytest.importorskip("polars")
    columns = {"text": ["a", "b"], "count": [3, None], "exact": [1.5, float("nan")]}
    polars.DataFrame({**columns, "words": [[1, 2], []]}).write_parquet(echoing.root / "in.parquet")
    run_echo(echoing, "in.parquet").assert_ok()
    assert seen(echoing) == [
        {"text": "a", "count": 3, "exact": 1.5, "words": [1, 2]},
        {"text": "b", "words": []},
    ]
    echoing.write("bad.parquet", "PAR1 nonsense PAR1")
    error = run_echo(echoing, "bad.parquet", "--json").assert_exit(2).json["error"]
    assert error["code"] == "input.file"
    assert "\n" not in error["message"]


def test_lines_from_stdin_are_kept_so_that_the_batch_can_be_continued(counting: Any) -> None:
    text = '{"text": "a"}\n{"text": "b"}\n'
    command = ("run", "demo.counted", "--batch", "-", "-o", "out.jsonl")
    counting.run(*command, input=text).assert_ok()
    assert outcomes(counting) == [(1, "ok"), (2, "ok")]
    assert (batch_folder(counting) / "input.jsonl").read_text() == text
    counting.run(*command, input=text).assert_ok()
    assert effects(counting) == ["a", "b"]
    error = counting.run(*command, "--json", input="").assert_exit(2).json["error"]
    assert error["code"] == "input.empty"


def test_results_become_a_csv_table_at_the_end(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b"])
    command = ("run", "demo.counted", "--batch", "in.jsonl", "-o", "out.csv")
    counting.run(*command).assert_exit(1)
    with (counting.root / "out.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first["outputs.text"] == "A"
    assert first["status"] == "ok"
    assert (second["exit_code"], second["error_code"]) == ("1", "call.server-error")
    assert not (counting.root / "out.csv.part").exists()
    summary = json.loads((counting.root / "out.csv.summary.json").read_text())
    assert summary["lines"] == 2


def test_results_become_a_parquet_table_at_the_end(project: Any) -> None:
    polars = pytest.importorskip("polars")
    make_counted(project)
    write_lines(project, ["a", "fail:b"])
    project.run(*RUN[:-1], "out.parquet").assert_exit(1)
    table = polars.read_parquet(project.root / "out.parquet").to_dicts()
    assert [row["outputs.text"] for row in table] == ["A", None]
    assert [row["line"] for row in table] == [1, 2]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_verify_makes_a_table_again_and_finds_what_was_altered(counting: Any, name: str) -> None:
    write_lines(counting, ["a", "fail:b", "c"])
    counting.run(*RUN[:4], "-o", name).assert_exit(1)
    batch = batch_folder(counting).name
    assert counting.run("verify", batch, "--json").assert_ok().json["findings"] == []
    for alter, expected in ALTERED_TABLES.items():
        whole = (counting.root / name).read_bytes()
        table = read_table_rows(counting.root / name)
        write_table_rows(counting.root / name, alter(table))
        result = counting.run("verify", batch, "--json").assert_exit(1)
        assert {each["code"] for each in result.json["findings"]} == {"batch.rows"}
        assert expected in result.json["findings"][0]["message"]
        (counting.root / name).write_bytes(whole)
    (counting.root / name).write_bytes(b"\xff\xfe")
    result = counting.run("verify", batch, "--json").assert_exit(1)
    assert "cannot be read as a table" in result.json["findings"][0]["message"]


def read_table_rows(path: Path) -> list[list[Any]]:
    """The header and the rows of a table."""
    return [list(cells) for cells in read_cells(str(path))]


def write_table_rows(path: Path, table: list[list[Any]]) -> None:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)
        return
    import polars

    header, *cells = table
    columns = {name: [row[place] for row in cells] for place, name in enumerate(header)}
    polars.DataFrame(columns).write_parquet(path)


def change_text(table: list[list[Any]]) -> list[list[Any]]:
    return [[cell if cell != "A" else "Z" for cell in row] for row in table]


ALTERED_TABLES = {
    change_text: "line 1 has a row that differs",
    lambda table: table[:-1]: "line 3 has no row",
    lambda table: [*table, table[1]]: "line 1 has two rows",
    lambda table: [row[:-1] for row in table]: "the columns are not",
    lambda table: [table[0], *([9, *row[1:]] for row in table[1:])]: "line 9 has a row, and no",
}
