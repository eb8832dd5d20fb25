"""Stores in SQLite. Each project has a file for agents' knowledge, one for their memory of users, and one for what
calls add up to."""

from typing import Final

KNOWLEDGE: Final = "knowledge.db"
MEMORY: Final = "memory.db"
LIMITS: Final = "limits.db"
