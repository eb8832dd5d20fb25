"""The closed vocabularies of the shared format, in its order (docs/reference/episode.md#shared-format)."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0"
SCHEMA_VERSION: Final = "1.0.0"
SUMMARY_SCHEMA: Final = "summary/1"
STEP_KINDS: Final = ("detect", "analyze", "plan", "act", "verify", "review")
STEP_STATUSES: Final = ("pending", "running", "done", "skipped", "failed", "vetoed")
OUTCOMES: Final = ("ok", "error", "vetoed", "aborted", "partial", "pending")
INTUITION_MODES: Final = ("advisory", "interventive", "hybrid")
EXCERPT: Final = 200
"""Characters of JSON that an action shows of its input or output."""
