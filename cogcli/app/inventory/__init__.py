"""Lists, searches and descriptions of skills, capabilities, bindings and services."""
