"""cogcli: run declared skills under governance, and keep every run as an episode."""

__version__ = "0.1.0"
