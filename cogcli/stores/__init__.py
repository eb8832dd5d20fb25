"""Stores in SQLite, a file of each for a project: what agents know, and what they remember of their users."""

from typing import Final

KNOWLEDGE: Final = "knowledge.db"
MEMORY: Final = "memory.db"
