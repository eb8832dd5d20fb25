"""Skills as folders with a SKILL.md, out and in."""
