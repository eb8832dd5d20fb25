"""What is checked before and beside runs: the registry, this machine; the reports of what was found."""
