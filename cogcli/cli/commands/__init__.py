"""One module per command, each with `execute(context) -> int`."""
