"""`new ...`: files that somebody begins with."""
