"""A language model in the run of a shipped skill: asked for by name, instead of rules that answer where it cannot be
reached (docs/how-to/use-a-model-in-skills.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.project import Project
from support.tinymodel import TinyModel

pytestmark = pytest.mark.sampled(4)

KEY = "a-key-of-the-tests"
TEXT = "The crane at quay 3 is late. The ship waits for the crane. Coffee is at noon."
RUN = ("run", "text.keyword-demo", "--json", "-p", f"text={TEXT}")
MODEL = ("--bind", "text.keyword.extract=model_text_keyword_extract")


@pytest.fixture
def server() -> Iterator[TinyModel]:
    with TinyModel(key=KEY) as model:
        yield model


@pytest.fixture
def asking(project: Project, server: TinyModel) -> Project:
    project.env |= {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": KEY,
        "OPENAI_MODEL": "schema:valid",
    }
    project.skill(
        "text.keyword-demo",
        """
        - id: words
          uses: text.keyword.extract
          input: {text: inputs.text}
          output: {keywords: outputs.keywords}
        """,
        inputs="{text: {type: string, required: true}}",
        outputs="{keywords: {type: array, required: true}}",
    )
    return project


def attempts(project: Project) -> list[tuple[str, str]]:
    """Binding and status or code of each attempt of the newest run."""
    lines = (project.episode / "events.jsonl").read_text(encoding="utf-8").splitlines()
    ended = next(
        e for e in map(json.loads, lines) if e["event_type"] in ("step.completed", "step.failed")
    )
    made: list[dict[str, Any]] = ended["payload"]["attempts"]
    return [(each["binding_id"], each.get("code") or each["status"]) for each in made]


def test_a_key_alone_sends_nothing(asking: Project, server: TinyModel) -> None:
    asking.run(*RUN).assert_ok()
    assert not server.requests
    assert [status for _, status in attempts(asking)] == ["success"]


def test_a_model_that_is_asked_for_answers(asking: Project, server: TinyModel) -> None:
    result = asking.installed(*RUN, *MODEL).assert_ok().json
    assert result["outputs"]["keywords"] == [TEXT]
    assert attempts(asking) == [("model_text_keyword_extract", "success")]
    assert len(server.requests) == 1
    asking.run("replay", asking.episode.name).assert_ok()
    asking.run("verify", asking.episode.name).assert_ok()
    assert KEY not in (asking.episode / "events.jsonl").read_text(encoding="utf-8")
    assert len(server.requests) == 1


def test_where_it_is_busy_the_rules_answer_after_three_attempts(
    asking: Project, server: TinyModel
) -> None:
    rules = asking.run(*RUN).assert_ok().json["outputs"]
    asking.env["OPENAI_MODEL"] = "fault:429"
    assert asking.run(*RUN, *MODEL).assert_ok().json["outputs"] == rules
    *model, last = attempts(asking)
    assert model == [("model_text_keyword_extract", "call.overloaded")] * 3
    assert last[1] == "success"


@pytest.mark.parametrize(
    ("kind", "key", "code"),
    [
        ("schema:prose", KEY, "response.missing"),
        ("schema:invented", KEY, "response.type"),
        ("schema:valid", "another-key", "call.rejected"),
    ],
)
def test_what_it_says_wrongly_is_an_error_and_no_reason_to_fall_back(
    asking: Project, kind: str, key: str, code: str
) -> None:
    asking.env |= {"OPENAI_MODEL": kind, "OPENAI_API_KEY": key}
    assert asking.run(*RUN, *MODEL).assert_exit(1).json["error"]["code"] == code
    assert attempts(asking) == [("model_text_keyword_extract", code)]


def test_preferred_without_a_key_the_rules_answer_and_that_is_told(
    asking: Project, server: TinyModel
) -> None:
    chosen = "overrides:\n  - {capabilities: [text.keyword.extract], service: model_openai, mode: prefer}\n"
    asking.write(".agent-skills/overrides.yaml", chosen)
    asking.run(*RUN).assert_ok()
    assert len(server.requests) == 1
    del asking.env["OPENAI_API_KEY"]
    asking.run(*RUN).assert_ok()
    assert len(server.requests) == 1
    told = asking.run("bindings", "explain", "text.keyword.extract").assert_ok().out
    assert "`OPENAI_API_KEY` is not set" in told


def test_one_flag_moves_all_that_a_model_can_do(asking: Project, server: TinyModel) -> None:
    given = ("run", "text.brief", "--json", "-p", f"text={TEXT}", "--prefer", "model_openai")
    asking.run(*given).assert_ok()
    assert len(server.requests) == 3
    del asking.env["OPENAI_API_KEY"]
    asking.run(*given).assert_ok()
    assert len(server.requests) == 3


def test_only_a_model_translates_so_without_a_key_nothing_begins(
    asking: Project, server: TinyModel
) -> None:
    given = (
        "run",
        "text.translate-summary",
        "--json",
        "-p",
        f"text={TEXT}",
        "-p",
        "target_language=fr",
    )
    answer = asking.run(*given).assert_ok().json["outputs"]
    assert answer["translation"] == TEXT
    before = asking.episodes
    del asking.env["OPENAI_API_KEY"]
    assert "env.missing" in asking.run(*given).assert_exit(3).out
    assert asking.episodes == before
    assert len(server.requests) == 1


def test_a_picture_goes_to_the_vision_model_twice_at_once(
    asking: Project, server: TinyModel
) -> None:
    from PIL import Image

    Image.new("RGB", (9, 9), "teal").save(asking.root / "quay.png")
    asking.env["OPENAI_VISION_MODEL"] = "schema:valid"
    labels = ("-p", 'labels:=["crane", "ship"]')
    outputs = asking.run(
        "run", "image.caption-and-classify", "--json", "-p", "image=quay.png", *labels
    )
    assert outputs.assert_ok().json["outputs"]["label"] == "crane"
    assert len(server.requests) == 2
    (asking.root / "quay.png").write_bytes(b"%PDF-1.7")
    refused = asking.run(
        "run", "image.caption-and-classify", "--json", "-p", "image=quay.png", *labels
    )
    assert refused.assert_exit(4).json["error"]["code"] == "safety.gate"
    assert len(server.requests) == 2


def test_labels_with_keywords_are_told_to_a_model_and_chosen_by_name(
    asking: Project, server: TinyModel
) -> None:
    labels = [{"label": "late", "keywords": ["delay"]}, {"label": "early"}]
    given = ("run", "text.detect-language-and-classify", "--json", "-p", f"text={TEXT}")
    answer = asking.run(
        *given, "-p", f"labels:={json.dumps(labels)}", "--prefer", "model_openai"
    ).assert_ok()
    assert answer.json["outputs"]["label"] == "late"
    [sent] = [str(request) for request in server.requests]
    assert "delay" in sent
