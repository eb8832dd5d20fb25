"""Checks of the registry and of this machine, outside of runs, and the reports of their findings."""
