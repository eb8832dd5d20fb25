"""Stores in SQLite, one file each per project: the knowledge of agents, and their memory of users."""

from typing import Final

KNOWLEDGE: Final = "knowledge.db"
MEMORY: Final = "memory.db"
