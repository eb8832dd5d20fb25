"""A tool and a registry in the layout of the runner guide: what somebody has who comes from there.

The registry holds contracts and skills, the tool bindings, services, functions with a package of helpers beside them,
a default selection, and the overrides of a host.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Final

TOOL: Final = {
    "cli/main.py": "raise SystemExit('this file is never run')\n",
    "runtime/__init__.py": "raise SystemExit('this file is never imported')\n",
    "policies/official_default_selection.yaml": """
        defaults:
          text.passage.clean: python_clean
          text.passage.summarize: model_summarize
          text.passage.rate: python_rate
          text.passage.label: python_label
        """,
    "services/official/texts.yaml": """
        id: texts
        kind: pythoncall
        module: official_services.texts
        metadata: {description: Functions on texts., status: active}
        """,
    "services/official/model.yaml": """
        id: model
        kind: openapi
        base_url: https://model.example/v1
        metadata:
          description: A model behind HTTP.
          headers: {Authorization: "Bearer ${GUIDE_MODEL_KEY}"}
        """,
    "bindings/official/text.passage.clean/python_clean.yaml": """
        id: python_clean
        capability: text.passage.clean
        service: texts
        protocol: pythoncall
        operation: clean
        request: {text: input.text, prefix: "${input.prefix}: "}
        response: {text: response.text}
        """,
    "bindings/official/text.passage.summarize/model_summarize.yaml": """
        id: model_summarize
        capability: text.passage.summarize
        service: model
        protocol: openapi
        operation: summaries
        request: {text: input.text}
        response: {summary: response.summary}
        metadata: {method: POST, response_mode: json}
        """,
    "bindings/official/text.passage.summarize/python_summarize.yaml": """
        id: python_summarize
        capability: text.passage.summarize
        service: texts
        protocol: pythoncall
        operation: summarize
        request: {text: input.text}
        response: {summary: response.summary, note: response.note}
        """,
    "bindings/official/text.passage.rate/python_rate.yaml": """
        id: python_rate
        capability: text.passage.rate
        service: texts
        protocol: pythoncall
        operation: rate
        request: {text: input.text}
        response: {score: response.score, words: response.words}
        """,
    "bindings/official/text.passage.label/python_label.yaml": """
        id: python_label
        capability: text.passage.label
        service: texts
        protocol: pythoncall
        operation: label
        request: {score: input.score, note: input.note}
        response: {label: response.label}
        """,
    "official_services/__init__.py": "",
    "official_services/texts.py": """
        from helpers.words import first_sentence, squeeze


        def clean(text, prefix=""):
            return {"text": squeeze(text), "prefix": prefix}


        def summarize(text):
            return {"summary": first_sentence(text), "note": None}


        def rate(text):
            return {"score": len(text.split())}


        def label(score, note=None):
            return {"label": "long" if score > 3 else "short"}
        """,
    "helpers/words.py": """
        def squeeze(text):
            return " ".join(text.split())


        def first_sentence(text):
            return text.partition(".")[0] + "."
        """,
    ".agent-skills/overrides.yaml": """
        overrides:
          - {capabilities: [text.passage.rate], service: texts, mode: prefer}
        """,
}
REGISTRY: Final = {
    "tools/validate_registry.py": "raise SystemExit('this file is never run')\n",
    "capabilities/text.passage.clean.yaml": """
        id: text.passage.clean
        version: "1.0.0"
        description: Takes superfluous blanks out of a text.
        inputs:
          text: {type: string, required: true}
          prefix: {type: string, description: What stands before it.}
        outputs: {text: {type: string, required: true}}
        properties: {deterministic: true, side_effects: false}
        metadata: {layer: atomic, tags: [text]}
        """,
    "capabilities/text.passage.summarize.yaml": """
        id: text.passage.summarize
        version: "1.0.0"
        description: Sums a text up.
        inputs: {text: {type: string, required: true}}
        outputs: {summary: {type: string, required: true}, note: {type: string}}
        properties: {side_effects: false}
        metadata:
          tags: [text]
          tags: [text, summary]
        """,
    "capabilities/text.passage.rate.yaml": """
        id: text.passage.rate
        version: "1.0.0"
        description: Says how long a text is.
        inputs: {text: {type: string, required: true}}
        outputs: {score: {type: number, required: true}}
        properties: {side_effects: false}
        """,
    "capabilities/text.passage.label.yaml": """
        id: text.passage.label
        version: "1.0.0"
        description: Names a score. What it takes is called a text, and is a number everywhere.
        inputs: {score: {type: string, required: true}, note: {type: string}}
        outputs: {label: {type: string, required: true}}
        properties: {side_effects: false}
        """,
    "skills/official/text/clean/skill.yaml": """
        id: text.clean
        version: "1.0.0"
        name: Clean
        description: Cleans a text.
        inputs: {text: {type: string, required: true}, prefix: {type: string}}
        outputs: {text: {type: string, required: true}}
        steps:
          - id: clean
            uses: text.passage.clean
            input: {text: inputs.text, prefix: inputs.prefix}
            output: {text: outputs.text}
        """,
    "skills/official/text/summary/skill.yaml": """
        id: text.summary
        version: "1.0.0"
        name: Summary
        description: Cleans a text and sums it up.
        inputs: {text: {type: string, required: true}}
        outputs: {summary: {type: string, required: true}, note: {type: string, required: true}}
        steps:
          - id: clean
            uses: skill:text.clean
            input: {text: inputs.text}
            output: {text: vars.text}
          - id: sum
            uses: text.passage.summarize
            input: {text: vars.text}
            output: {summary: outputs.summary, note: outputs.note}
            config: {depends_on: [clean]}
        """,
    "skills/official/text/label/skill.yaml": """
        id: text.label
        version: "1.0.0"
        name: Label
        description: Rates a text and names what came out.
        inputs: {text: {type: string, required: true}}
        outputs: {label: {type: string, required: true}, score: {type: string, required: true}}
        steps:
          - {id: rate, uses: text.passage.rate, input: {text: inputs.text}, output: {score: outputs.score}}
          - {id: name, uses: text.passage.label, input: {score: outputs.score}, output: {label: outputs.label}}
        """,
}


def write_files(root: Path, files: dict[str, str]) -> Path:
    """The files below a directory, which is returned."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip("\n"))
    return root
