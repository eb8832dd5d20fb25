"""Stores in SQLite. Each project has one file for agents' knowledge, and one for their memory of users."""

from typing import Final

KNOWLEDGE: Final = "knowledge.db"
MEMORY: Final = "memory.db"
