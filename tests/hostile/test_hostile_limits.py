"""Too much, too deep, too many: every size has a cap that is told. Names follow the list of hostile cases."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from attack import COGCLI, attack, hold_all_episodes

pytestmark = pytest.mark.sampled(8)

GREET = ("run", "demo.greet", "--json")
MEMORY = 150 * 2**20


class Case(NamedTuple):
    """Flags or an input, and the code that refuses them."""

    name: str
    arguments: tuple[str, ...]
    error: str
    data: bytes = b""


def stdin(name: str, data: bytes, error: str) -> Case:
    return Case(name, ("--input", "-"), error, data)


def _values(count: int) -> bytes:
    return b'{"text":"x","times":[' + b"0," * count + b"0]}"


NUMBERS = (
    "-1",
    "true",
    "1e308",
    "NaN",
    "nan",
    "inf",
    "9223372036854775808",
    "",
    "0x10",
    "\u0661",
    "1_0",
)
REFUSED = (
    *(Case(f"L02 seed {text}", ("--seed", text), "usage.value") for text in NUMBERS),
    *(
        Case(f"L02 workers {text}", ("--max-workers", text), "usage.value")
        for text in (*NUMBERS, "0", "257")
    ),
    *(
        Case(f"L01 timeout {text}", ("--timeout", text), "usage.value")
        for text in (*NUMBERS[:6], "0", "1e400")
    ),
    *(
        Case(f"L01 step {text}", ("--step-timeout", text), "usage.value")
        for text in (*NUMBERS[:6], "0", "31536001")
    ),
    Case("L01 input", ("--input", '{"text":"x","times":NaN}'), "input.json"),
    Case("L02 input", ("--input", '{"text":"x","times":9223372036854775808}'), "input.json"),
    Case("L02 input float", ("--input", '{"text":"x","times":1e308}'), "input.type"),
    Case("L02 input boolean", ("--input", '{"text":"x","times":true}'), "input.type"),
    Case("L02 input text", ("--input", '{"text":"x","times":"10"}'), "input.type"),
    stdin("L29 a byte too many", b'{"text":"' + b"x" * (8 * 2**20) + b'"}', "input.size"),
    stdin("L29 endless", b" " * (9 * 2**20), "input.size"),
    stdin("L29 too many values", _values(60_000), "input.size"),
    stdin("L29 too deep", b'{"text":' + b"[" * 200_000, "input.json"),
    stdin("L29 not text", b"\x00\xff" * 1000, "input.encoding"),
    stdin("L29 nothing", b"", "input.empty"),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_exceeds_a_limit_is_refused_before_anything_runs(demo: Any, case: Case) -> None:
    text = () if case.data or "--input" in case.arguments else ("-p", "text=x")
    outcome = attack(demo, *GREET, *text, *case.arguments, input=case.data)
    assert (outcome.code, outcome.error) == (2, case.error)
    assert not demo.episodes


MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=open("answer.json", "wb")).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""
"""A small process between: what a large one starts is counted as large from the beginning."""


@pytest.mark.sampled(2)
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")
def test_the_largest_input_allowed_is_read_within_its_memory(demo: Any) -> None:
    text = "x" * (8 * 2**20 - 20)
    demo.write("large.json", json.dumps({"text": text}))
    run = [COGCLI, *GREET, "-q", "--input-file", "large.json"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *run],
        cwd=demo.root,
        env=demo.env,
        capture_output=True,
        check=True,
    )
    code, memory = map(int, done.stdout.split())
    body = json.loads((demo.root / "answer.json").read_bytes())
    assert (code, body["outputs"]["text"]) == (0, text.upper())
    assert memory < MEMORY
    hold_all_episodes(demo)


GIVES = """
def upper(text):
    return {body}

def fail(text):
    return {{}}
"""


class Answer(NamedTuple):
    """What a function answers, and how the run ends."""

    name: str
    body: str
    exit: int
    error: str | None


ANSWERS = (
    Answer("L28 a hundred million characters", '{"text": "x" * 100_000_000}', 1, "response.size"),
    Answer("L28 eleven million bytes", '{"text": "\\u20ac" * 4_000_000}', 1, "response.size"),
    Answer("L28 a large answer", '{"text": "x" * 3_000_000}', 0, None),
    Answer("L28 no number", '{"text": text, "more": float("nan")}', 1, "response.not-json"),
    Answer("L28 a large integer", '{"text": text, "more": 2**60}', 1, "response.not-json"),
    Answer("L03 tokens given back", '{"text": text, "usage": {"input_tokens": -10**6}}', 0, None),
    Answer("L03 tokens that are no count", '{"text": text, "usage": {"input_tokens": 1.5}}', 0, None),
    Answer("L03 tokens that are true", '{"text": text, "usage": {"output_tokens": True}}', 0, None),
)  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
def test_what_a_function_answers_is_bounded(demo: Any, case: Answer) -> None:
    demo.write("demo_services.py", GIVES.format(body=case.body))
    outcome = attack(demo, *GREET, "-q", "-p", "text=hi")
    assert (outcome.code, outcome.error) == (case.exit, case.error)
    metrics = outcome.envelope["metrics"]
    assert all(
        metrics[name] >= 0 for name in ("tokens_in", "tokens_out", "llm_calls", "tool_calls")
    )
    hold_all_episodes(demo)


def test_L28_the_cap_is_the_bindings(demo: Any) -> None:
    demo.write("demo_services.py", GIVES.format(body='{"text": "x" * 1000}'))
    binding = demo.root / "bindings/local/demo.text.upper/demo_text_upper.yaml"
    for key, error in (
        ("max_response_bytes: 1000", "response.size"),
        ("max_request_bytes: 10", "request.size"),
    ):
        kept = binding.read_text()
        binding.write_text(f"{kept}metadata: {{{key}}}\n")
        outcome = attack(demo, *GREET, "-p", "text=a longer text")
        assert (outcome.code, outcome.error) == (1, error)
        binding.write_text(kept)
    assert attack(demo, *GREET, "-p", "text=a longer text").code == 0


def nested_schema(levels: int) -> str:
    """A schema that doubles with every level."""
    schema: Any = {"type": "object"}
    for _ in range(levels):
        schema = {"allOf": [schema, schema], "anyOf": [schema, schema]}
    return json.dumps(schema)


@pytest.mark.sampled(16)
def test_L23_a_schema_that_doubles_with_every_level_is_refused(demo: Any) -> None:
    for levels, accepted in ((2, True), (6, False)):
        demo.skill(
            "demo.schema",
            "- {id: a, uses: demo.text.upper, input: {text: inputs.text}, output: {text: outputs.text}}",
            inputs=f"{{text: {{type: string, required: true, schema: {nested_schema(levels)}}}}}",
            outputs="{text: {type: string}}",
        )
        outcome = attack(demo, "validate", "skills", "--json")
        assert (outcome.code == 0) is accepted
        assert accepted or outcome.error in ("field.schema", "yaml.limit", "yaml.size")


def test_L26_a_condition_of_five_thousand_parentheses_is_refused(demo: Any) -> None:
    for count in (5000, 500):
        demo.skill(
            "demo.nested",
            f"""
            - id: a
              uses: demo.text.upper
              input: {{text: inputs.text}}
              output: {{text: outputs.text}}
              config:
                condition: "{"(" * count}inputs.text == 'x'{")" * count}"
            """,
            inputs="{text: {type: string, required: true}}",
            outputs="{text: {type: string}}",
        )
        outcome = attack(demo, "run", "demo.nested", "-p", "text=x", "--json")
        assert (outcome.code, outcome.error) == (3, "expr.syntax")
        assert not demo.episodes


@pytest.mark.sampled(16)
def test_a_folder_of_many_files_is_an_episode_with_many_findings(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    for number in range(5000):
        (demo.episode / f"extra-{number}").write_bytes(b"")
    outcome = attack(demo, "verify", "--json")
    assert outcome.code == 1
    assert len(outcome.envelope["findings"]) < 200
    for command in (("ls",), ("trace",), ("state", "show"), ("doctor",)):
        attack(demo, *command, "--json")
