"""A failing run tells where, what was expected and found, and with `-v` everything that led to it
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

from typing import Any

RUN = ("run", "demo.greet", "-p", "text=hi")
BINDING = "bindings/local/demo.text.upper/demo_text_upper.yaml"
FAILED = {"COGCLI_FAKE_CLOCK": "1795000000", "COGCLI_FAKE_IDS": "7"}


def rebound(demo: Any, before: str, after: str) -> None:
    file = demo.root / BINDING
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_a_reply_without_the_output_is_framed_in_the_binding(demo: Any) -> None:
    rebound(demo, "{text: response.text}", "\n  text: response.result.txt")
    result = demo.run(*RUN, env={"COGCLI_FORCE_TTY": "88", "NO_COLOR": "1"}).assert_exit(1)
    screen = result.err[result.err.index("error[") : result.err.index("\nerror in ")]
    assert screen == (
        "error[response.missing]: step `first`: the service answered, but without\n"
        "  `response.result.txt`: `response` holds text\n"
        f"  --> {BINDING}:8:9\n"
        "   |\n"
        " 8 |   text: response.result.txt\n"
        "   |         ^^^^^^^^^^^^^^^^^^^ no `result` in this reply\n"
        "   |\n"
        "  step      first → demo.text.upper → demo_text_upper → demo\n"
        "  expected  response.result.txt\n"
        "  found     text\n"
        '  reply     {"text":"HI"}\n'
    )


def test_the_envelope_names_place_expected_and_found(demo: Any) -> None:
    rebound(demo, "response.text", "response.txt")
    error = demo.run(*RUN, "--json").assert_exit(1).json["error"]
    assert {key: error[key] for key in ("file", "line", "column", "expected", "found", "hint")} == {
        "file": BINDING,
        "line": 7,
        "column": 18,
        "expected": "response.txt",
        "found": ["text"],
        "hint": "did you mean `response.text`?",
    }
    chain = [error[key] for key in ("step", "capability", "binding", "service")]
    assert chain == ["first", "demo.text.upper", "demo_text_upper", "demo"]


def test_a_reply_of_another_type_is_placed_at_its_output(demo: Any) -> None:
    demo.write(
        "demo_services.py",
        "def upper(text):\n    return {'text': 3}\n\n\ndef fail(text):\n    return {}\n",
    )
    error = demo.run(*RUN, "--json").assert_exit(1).json["error"]
    assert (error["code"], error["file"], error["line"], error["column"]) == (
        "response.type",
        BINDING,
        7,
        18,
    )


def test_a_request_that_cannot_be_filled_is_placed_at_its_template(demo: Any) -> None:
    rebound(
        demo,
        "request: {text: input.text}",
        "request:\n  text: ${input.text}\n  more: 'in ${input.style.tone}'",
    )
    demo.write(
        "demo_services.py",
        "def upper(text, more=''):\n    return {}\n\n\ndef fail(text):\n    return {}\n",
    )
    file = demo.root / "capabilities/demo.text.upper.yaml"
    file.write_text(
        file.read_text().replace(
            "inputs: {text", "inputs: {style: {type: object, default: {}}, text", 1
        )
    )
    error = demo.run(*RUN, "--json").assert_exit(1).json["error"]
    assert (error["code"], error["file"], error["line"], error["column"]) == (
        "request.missing",
        BINDING,
        8,
        9,
    )


def test_a_reply_that_is_no_json_is_placed_at_the_operation(demo: Any) -> None:
    demo.write(
        "demo_services.py",
        "def upper(text):\n    return {'text': {1, 2}}\n\n\ndef fail(text):\n    return {}\n",
    )
    error = demo.run(*RUN, "--json").assert_exit(1).json["error"]
    assert (error["code"], error["file"], error["line"]) == ("response.not-json", BINDING, 5)


def test_a_warm_run_knows_the_place_as_well(demo: Any) -> None:
    rebound(demo, "response.text", "response.txt")
    first, second = (demo.run(*RUN, "--json").json["error"] for _ in range(2))
    assert (first["line"], first["column"]) == (second["line"], second["column"]) == (7, 18)


CAUSED = """
def upper(text):
    return {"text": text}


def fail(text):
    try:
        {}["key"]
    except KeyError as error:
        raise ValueError("no luck") from error
"""


def test_verbose_tells_every_cause(demo: Any) -> None:
    demo.write("demo_services.py", CAUSED)
    plain = demo.run("run", "demo.review", "-p", "text=hi").assert_exit(1).err
    assert "cause" not in plain
    verbose = demo.run("run", "demo.review", "-p", "text=hi", "-v").assert_exit(1).err
    assert [
        line.split(maxsplit=1)[1] for line in verbose.splitlines() if line.startswith("  cause")
    ] == [
        "ValueError: no luck",
        "KeyError: 'key'",
    ]
    assert "Traceback" not in verbose
    causes = demo.run("run", "demo.review", "-p", "text=hi", "--json").json["error"]["causes"]
    assert causes == ["ValueError: no luck", "KeyError: 'key'"]


def test_the_attempts_of_a_chain_are_among_the_causes(demo: Any) -> None:
    rebound(demo, "operation: upper", "operation: fail")
    file = demo.root / BINDING
    file.write_text(file.read_text() + "metadata: {fallback_binding_id: second}\n")
    second = file.read_text().replace("id: demo_text_upper", "id: second").partition("metadata")[0]
    demo.write(
        "bindings/local/demo.text.upper/second.yaml",
        second.replace("response.text", "response.txt").encode(),
    )
    demo.write(
        "policies/official_default_selection.yaml", "defaults: {demo.text.upper: demo_text_upper}\n"
    )
    demo.write("demo_services.py", CAUSED)
    causes = demo.run(*RUN, "--json").assert_exit(1).json["error"]["causes"]
    assert [cause for cause in causes if cause.startswith("attempt")] == [
        "attempt 1: demo_text_upper → demo: call.server-error: ValueError: no luck (at demo_services.py:9)",
        "attempt 2: second → demo: call.server-error: ValueError: no luck (at demo_services.py:9)",
    ]


def test_a_missing_reference_is_the_cause_of_an_input_error(demo: Any) -> None:
    demo.skill(
        "demo.walk",
        """
        - id: keep
          uses: demo.text.upper
          input: {text: inputs.box.name}
          output: {inputs.box: vars.box}
        - id: read
          uses: demo.text.upper
          input: {text: vars.box.absent}
          output: {text: outputs.text}
        """,
        inputs="{box: {type: object, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    result = demo.run("run", "demo.walk", "-p", 'box:={"name": "x"}', "-v").assert_exit(1)
    assert "error[input.reference]: step `read`" in result.err
    assert "\n  cause  input.reference: `vars.box.absent`" in result.err
