"""The tool servers that the package contains: their tools, and the function of each
(docs/reference/protocols.md#mcp-bundled)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MODULES: Final = "cogcli.official."

TABLES: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "official_text_tools": {
        "normalize": ("text", "normalize"),
        "split_sections": ("text", "split_sections"),
        "detect_language": ("text", "detect_language"),
        "summarize": ("prose", "summarize_by_frequency"),
        "summarize_by_lead": ("prose", "summarize_by_lead"),
        "extract_keywords": ("prose", "extract_keywords"),
        "score_readability": ("prose", "score_readability"),
        "find_entities": ("extract", "find_entities"),
    },
    "official_data_tools": {
        "parse_json": ("data", "parse_json"),
        "merge_objects": ("data", "merge_objects"),
        "profile_records": ("data", "profile_records"),
        "validate": ("schema", "validate"),
        "summarize_column": ("table", "summarize_column"),
        "total_groups": ("table", "total_groups"),
    },
    "official_web_tools": {
        "extract_content": ("web", "extract_content"),
    },
}
"""By server and tool: module, below `MODULES`, and function. Arguments are the function's own."""
