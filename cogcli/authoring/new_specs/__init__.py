"""`new ...`: first files of projects, packs, skills, capabilities, bindings and scenarios."""
