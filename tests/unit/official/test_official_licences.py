"""Licences told by tags and phrases."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogcli.official.licences import detect_licence

SHARED = Path("/usr/share/common-licenses")
ROOT = Path(__file__).parents[3]
EXPECTED = {
    "Apache-2.0": "Apache-2.0",
    "Artistic": "Artistic-1.0",
    "BSD": "BSD-3-Clause",
    "CC0-1.0": "CC0-1.0",
    "GFDL-1.2": "GFDL-1.2",
    "GFDL-1.3": "GFDL-1.3",
    "GPL-1": "GPL-1.0",
    "GPL-2": "GPL-2.0",
    "GPL-3": "GPL-3.0",
    "LGPL-2": "LGPL-2.0",
    "LGPL-2.1": "LGPL-2.1",
    "LGPL-3": "LGPL-3.0",
    "MPL-1.1": "MPL-1.1",
    "MPL-2.0": "MPL-2.0",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_licences_of_the_system_are_known(name: str) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"no {SHARED / name} here")
    answer = detect_licence((SHARED / name).read_text(encoding="utf-8"))
    assert answer["licence"] == EXPECTED[name]
    assert answer["evidence"]


def test_our_own_licence_is_known() -> None:
    assert detect_licence((ROOT / "LICENSE").read_text(encoding="utf-8"))["licence"] == "Apache-2.0"


@pytest.mark.parametrize(
    ("text", "licence", "confidence"),
    [
        (
            "# SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0\n",
            "GPL-2.0-only WITH Classpath-exception-2.0",
            1.0,
        ),
        ("/* SPDX-License-Identifier: MIT */", "MIT", 1.0),
        ("This tool is released under the MIT License.", "MIT", 0.7),
        ("Licensed under the Apache License, Version 2.0 (the License)", "Apache-2.0", 0.7),
    ],
)
def test_tags_and_sentences_name_a_licence(text: str, licence: str, confidence: float) -> None:
    answer = detect_licence(text)
    assert (answer["licence"], answer["confidence"]) == (licence, confidence)


@pytest.mark.parametrize("text", ["", "All rights reserved.", "We like the GNU project and its licence."])
def test_where_nothing_tells_a_licence_there_is_none(text: str) -> None:
    assert detect_licence(text) == {"confidence": 0.0, "evidence": []}
