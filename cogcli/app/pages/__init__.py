"""Texts shown by `help TOPIC` and `explain CODE`, one file each."""
