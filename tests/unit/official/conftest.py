"""What shipped functions find around them in a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.protocols import PROTOCOLS
from cogcli.specs.layers import layers_for
from cogcli.specs.registry import Registry

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Functions read files in ordinary folders alone."""
    return ordinary_path


@pytest.fixture(scope="session")
def opened_registry() -> Registry:
    return Registry(
        layers_for(project=None, project_trusted=False), protocols=PROTOCOLS, base=str(ROOT)
    )


@pytest.fixture
def shipped_registry(opened_registry: Registry, ordinary_path: Path) -> Iterator[Registry]:
    """The shipped skills and capabilities, and a store, as a run has them."""
    token = ACCESS.set(HostAccess(lambda: opened_registry, str(ordinary_path)))
    yield opened_registry
    ACCESS.reset(token)
