"""Frameworks drive an agent whose tools go through a gate: the examples of `govern-a-framework` are run as they stand,
with models that follow a script. The verdicts are read by the SDK of AGENT-HOOKS.

A long job: it installs the frameworks into environments of their own, so it runs with `COGCLI_LONG_TESTS=1`
(`check.py --long`) alone. `COGCLI_SERVERS_DIR` names a directory that keeps the environments.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.foreign_servers import install, keep_environments, python_environment
from support.gateway_client import events_of
from support.pages import blocks
from support.project import Project

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
pytestmark = pytest.mark.skipif(
    not LONG, reason="frameworks: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
)
ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/how-to/govern-a-framework.md"
CALLS = '[("bo@example.com", "1"), ("eve@elsewhere.example", "2")]'
LANGGRAPH = f"""
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        assert [tool.name if hasattr(tool, "name") else tool.__name__ for tool in tools] == ["send_mail"]
        return self

def asking(to, id):
    return AIMessage("", tool_calls=[{{"name": "send_mail", "args": {{"to": to, "text": "x"}}, "id": id}}])

model = Scripted(messages=iter([*(asking(*each) for each in {CALLS}), AIMessage("done")]))
"""
OPENAI_AGENTS = f"""
import json
from agents import Model, ModelResponse, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)

class Scripted(Model):
    def __init__(self, items):
        self.items = iter(items)
    async def get_response(self, *_, **__):
        return ModelResponse(output=[next(self.items)], usage=Usage(), response_id=None)
    def stream_response(self, *_, **__):
        raise NotImplementedError

def asking(to, id):
    arguments = json.dumps({{"to": to, "text": "x"}})
    return ResponseFunctionToolCall(name="send_mail", arguments=arguments, call_id=id, type="function_call")

text = ResponseOutputText(text="done", type="output_text", annotations=[])
last = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
model = Scripted([*(asking(*each) for each in {CALLS}), last])
"""
PYDANTIC_AI = f"""
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

parts = [ToolCallPart("send_mail", {{"to": to, "text": "x"}}) for to, _ in {CALLS}]
script = iter([*parts, TextPart("done")])
model = FunctionModel(lambda messages, info: ModelResponse(parts=[next(script)]))
"""
FRAMEWORKS = {
    "with_langgraph.py": ("langgraph==1.2.24", LANGGRAPH),
    "with_openai_agents.py": ("openai-agents==0.24.0", OPENAI_AGENTS),
    "with_pydantic_ai.py": ("pydantic-ai-slim==2.68.0", PYDANTIC_AI),
}
HOOKS = "agent-hooks-sdk==0.1.0b3"


@pytest.fixture
def desk(project: Project) -> Project:
    """A project with the pack of the guide."""
    project.write("cogcli.toml", "")
    (pack,) = [block for block in blocks(GUIDE) if block.named.startswith("packs/")]
    project.write(pack.named, pack.text.encode())
    return project


def environment(made: Path, package: str) -> Path:
    """The Python of an environment that has a package, and this project."""
    folder = keep_environments(made) / f"gate-{package.partition('=')[0]}"
    python = python_environment(folder, package) / "bin/python"
    if not (folder / ".cogcli").exists():
        install([str(python), "-m", "pip", "install", "-q", "-e", str(ROOT)])
        (folder / ".cogcli").touch()
    return python


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_calls_its_tools_through_the_gate(
    desk: Project, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    package, model = FRAMEWORKS[name]
    python = environment(tmp_path_factory.mktemp("frameworks"), package)
    (example,) = [block.text for block in blocks(GUIDE) if block.named == name]
    assert len([line for line in example.splitlines() if line]) <= 25
    desk.write(name, f"{model}\n{example}".encode())
    done = subprocess.run(
        [str(python), "-W", "error::DeprecationWarning:__main__", name],
        cwd=desk.root, env=desk.env, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = events_of(desk.episode)
    asked = [
        each["payload"]["input"]["to"] for each in events if each["event_type"] == "call.requested"
    ]
    verdicts = [
        each["payload"]["verdict"] for each in events if each["event_type"] == "policy.decided"
    ]
    assert asked == ["bo@example.com", "eve@elsewhere.example"]
    assert verdicts == ["allow", "deny"]
    assert [each["event_type"] for each in events].count("step.started") == 1
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_verdicts_are_those_of_agent_hooks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each form of a verdict is read by the SDK, and means the same there."""
    from cogcli.api import GateResult

    python = environment(tmp_path_factory.mktemp("frameworks"), HOOKS)
    results: dict[str, Any] = {
        "allow": GateResult("done", {"a": 1}),
        "transform": GateResult("done", {"a": "[masked]"}, is_masked=True),
        "deny": GateResult("denied", code="policy.denied"),
        "lifted": GateResult("pending", code="policy.approval", approval_id="ap_1"),
        "doubt": GateResult("in_doubt", code="effect.in-doubt"),
    }
    program = """
import json, sys
from agent_hooks import InterceptorResponse
for name, verdict in json.load(sys.stdin).items():
    read = InterceptorResponse.parse(json.dumps(verdict)).verdict
    print(name, read.decision.value, read.approval is not None)
"""
    done = subprocess.run(
        [str(python), "-c", program],
        input=json.dumps({name: result.verdict for name, result in results.items()}),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [
        "allow allow False",
        "transform transform False",
        "deny deny False",
        "lifted deny True",
        "doubt deny False",
        "",
    ]
