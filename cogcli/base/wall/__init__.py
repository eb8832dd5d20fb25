"""The wall around a process that reads foreign bytes or runs foreign code (docs/reference/service.md#isolation)."""
