"""Language models: how a judgment asks one, whatever it is (docs/reference/models.md)."""
