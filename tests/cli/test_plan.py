"""`run --plan`: everything a run would do and need, and nothing of it done."""

from __future__ import annotations

from typing import Any

TEXT = "{text: {type: string, required: true}}"


def release(project: Any) -> None:
    """A skill with every shape of step, an API that wants a key, and a capability that wants a person."""
    project.demo()
    project.write(
        "services/local/api.yaml",
        """
        id: api
        kind: openapi
        base_url: https://api.example.com/v1
        metadata: {headers: {X-Key: "${DEMO_KEY}"}}
        """,
    )
    project.capability("demo.text.remote", "say")
    binding = project.root / "bindings/local/demo.text.remote/demo_text_remote.yaml"
    binding.write_text(
        binding.read_text()
        .replace("service: demo", "service: api")
        .replace("pythoncall", "openapi")
    )
    project.capability("demo.gate", "upper", outputs="{allowed: {type: boolean, required: true}}",
                       response="{allowed: true}", extra="safety: {trust_level: standard}\n")  # fmt: skip
    project.capability(
        "demo.text.publish", "upper",
        extra="safety: {trust_level: elevated, requires_confirmation: true,"
        " mandatory_pre_gates: [{capability: demo.gate, on_fail: require_human}]}\n",
    )  # fmt: skip
    project.skill(
        "demo.release",
        """
        - id: inner
          uses: skill:demo.greet
          input: {text: inputs.text}
          output: {text: vars.text}
        - id: left
          uses: demo.text.remote
          input: {text: vars.text}
          output: {text: vars.left}
          config: {depends_on: [inner], condition: inputs.text != 'x', otherwise: {text: none}}
        - id: way
          input: {text: vars.text}
          output: {text: vars.right}
          config:
            depends_on: [inner]
            router: {on: inputs.text, cases: {a: demo.text.upper, b: "skill:demo.greet"}, default: demo.text.upper}
        - id: send
          uses: demo.text.publish
          input: {text: item}
          output: {text: vars.sent}
          config:
            depends_on: [left, way]
            foreach: {items: "[vars.left, vars.right]"}
        - id: last
          uses: demo.text.upper
          input: {text: inputs.text}
          output: {text: outputs.text}
          config: {condition: vars.sent is not null, otherwise: {text: none}}
        """,
        inputs=TEXT,
        outputs=TEXT,
    )


ROWS = """\
would run 5 steps in 4 waves; nothing was executed
  1  inner      skill:demo.greet                    reads inputs.text
       first    demo.text.upper    pythoncall:demo  reads inputs.text
       second   demo.text.upper    pythoncall:demo  reads vars.text
  2  left ∥ way
     left       demo.text.remote   openapi:api      reads vars.text, inputs.text
     way        _router                             reads vars.text, inputs.text
       a        demo.text.upper    pythoncall:demo
       b        skill:demo.greet
       default  demo.text.upper    pythoncall:demo
  3  send       demo.text.publish  pythoncall:demo  reads vars.left, vars.right
  4  last       demo.text.upper    pythoncall:demo  reads inputs.text, vars.sent
"""
RUN = ("run", "demo.release", "-p", "text=hi", "--plan")
KEY = {"DEMO_KEY": "sesame"}


def test_the_plan_shows_waves_targets_nested_steps_and_reads(project: Any) -> None:
    release(project)
    result = project.run(
        *RUN, "--trust-level", "elevated", "--confirm", "demo.text.publish", env=KEY
    ).assert_ok()
    assert result.out.startswith(ROWS)
    assert result.out[len(ROWS) :] == (
        "needs  DEMO_KEY ✓   network api.example.com   trust elevated"
        "   approvals demo.text.publish ✓, demo.text.publish if demo.gate says no\n"
    )
    assert "sesame" not in result.out + result.err


def test_a_plan_executes_and_writes_nothing(project: Any) -> None:
    release(project)
    module = project.root / "demo_services.py"
    module.write_text(f"{module.read_text()}\nraise SystemExit('imported')\n")
    project.run(*RUN, env=KEY).assert_ok()
    assert not (project.root / ".cogcli").exists()


def test_needs_that_are_not_met_are_marked(project: Any) -> None:
    release(project)
    last = project.run(*RUN, env=KEY).assert_ok().out.splitlines()[-1]
    assert "trust elevated ✗ (the run has standard)" in last
    assert "approvals demo.text.publish ✗" in last


def test_a_run_that_may_not_start_is_planned_and_refused(project: Any) -> None:
    release(project)
    result = project.run(*RUN).assert_exit(3)
    assert result.out.startswith(ROWS)
    assert "needs  DEMO_KEY ✗" in result.out
    assert "error[env.missing]" in result.err
    body = project.run(*RUN, "--json").assert_exit(3).json
    assert (body["error"]["code"], body["plan"]["exit_code"]) == ("env.missing", 3)


def test_wrong_inputs_do_not_hide_the_plan(project: Any) -> None:
    release(project)
    result = project.run("run", "demo.release", "-p", "txt=hi", "--plan", env=KEY).assert_exit(2)
    assert result.out.startswith(ROWS)
    assert "input.unknown" in result.err


def test_a_skill_with_errors_has_no_plan(project: Any) -> None:
    release(project)
    skill = project.root / "skills/local/demo/release/skill.yaml"
    skill.write_text(skill.read_text().replace("vars.left,", "vars.lft,"))
    result = project.run(*RUN, env=KEY).assert_exit(3)
    assert result.out == ""
    assert "error[ref.unwritten]" in result.err


def test_json_holds_the_plan_whole(project: Any) -> None:
    release(project)
    body = project.run(*RUN, "--json", env=KEY).assert_ok().json
    plan = body["plan"]
    assert (body["error"], plan["exit_code"], plan["waves"], list(plan["skills"])) == (
        None,
        0,
        4,
        ["demo.greet"],
    )
    by_id = {step["id"]: step for step in plan["steps"]}
    assert by_id["left"]["condition"] == "inputs.text != 'x'"
    assert [target["name"] for target in by_id["way"]["targets"]] == ["a", "b", "default"]
    assert plan["needs"] == {
        "variables": [{"name": "DEMO_KEY", "set": True, "service": "api"}],
        "missing": [],
        "network": ["api.example.com"],
        "trust": {"needed": "elevated", "given": "standard", "enough": False},
        "approvals": [{"capability": "demo.text.publish", "confirmed": False}],
        "may_ask": [{"capability": "demo.text.publish", "gate": "demo.gate"}],
    }


def test_a_narrow_terminal_gets_a_line_per_need(project: Any) -> None:
    release(project)
    result = project.run(*RUN, env={**KEY, "COGCLI_FORCE_TTY": "60", "NO_COLOR": "1"}).assert_ok()
    lines = result.out.splitlines()
    needs = next(n for n, line in enumerate(lines) if line.startswith("needs  DEMO_KEY"))
    assert lines[needs + 1] == "       network api.example.com"
    assert all(len(line) <= 60 for line in lines)
