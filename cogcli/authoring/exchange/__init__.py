"""Export and import of skills as folders with a SKILL.md."""
