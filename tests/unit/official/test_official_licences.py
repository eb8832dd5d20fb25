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


@pytest.mark.parametrize(
    "text", ["", "All rights reserved.", "We like the GNU project and its licence."]
)
def test_where_nothing_tells_a_licence_there_is_none(text: str) -> None:
    assert detect_licence(text) == {"confidence": 0.0, "evidence": []}


@pytest.mark.parametrize(
    "text",
    [
        "Not licensed under the MIT License.",
        "This is not the Apache License, and it isn't licensed under the Apache License, Version 2.0.",
        "// This file is no longer\n// distributed under the terms of the MIT licence.",
        "Neither licensed under the MIT License nor released under the modified BSD license.",
        "You may not share it under the terms of the GNU General Public License, version 2 or any later version.",
    ],
)
def test_a_licence_that_is_denied_is_none(text: str) -> None:
    assert detect_licence(text) == {"confidence": 0.0, "evidence": []}


@pytest.mark.parametrize(
    "text",
    [
        "Not licensed under the MIT License before 2020; now licensed under the MIT License.",
        "The docs are not free; the code is licensed under the MIT License.",
        "Where not stated otherwise this is licensed under the MIT License.",
        "It has no warranty and is released under the MIT License. You may not remove this notice.",
    ],
)
def test_what_denies_another_thing_does_not_deny_the_licence(text: str) -> None:
    assert detect_licence(text)["licence"] == "MIT"


def test_several_texts_are_several_licences() -> None:
    mit = "Permission is hereby granted, free of charge. The above copyright notice and this permission notice stay."
    boost = "Boost Software License - Version 1.0: machine-executable object code"
    answer = detect_licence(f"For a:\n{boost}\nFor b:\n{mit}")
    assert (answer["licence"], answer["confidence"]) == ("BSL-1.0 AND MIT", 0.7)
    assert (detect_licence(mit)["licence"], detect_licence(mit)["confidence"]) == ("MIT", 0.95)


FORMAT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nLicense: header\n\n"


@pytest.mark.parametrize(
    ("field", "licence"),
    [
        ("GPL-2+", "GPL-2.0-or-later"),
        ("LGPL-2.1", "LGPL-2.1-only"),
        ("GPL-3.0+", "GPL-3.0-or-later"),
        ("GFDL-NIV-1.3+", "GFDL-1.3-no-invariants-or-later"),
        ("Expat", "MIT"),
        ("BSD-3-clause", "BSD-3-Clause"),
        ("Apache-2", "Apache-2.0"),
        ("MPL-1.1", "MPL-1.1"),
        ("zlib", "Zlib"),
        ("Artistic or GPL-1+", "Artistic-1.0 OR GPL-1.0-or-later"),
        ("GPL-2+ or Artistic, and Expat", "(GPL-2.0-or-later OR Artistic-1.0) AND MIT"),
        ("GPL-2+ and Expat, or ISC", "(GPL-2.0-or-later AND MIT) OR ISC"),
        ("GPL-3+ with Bison exception", "GPL-3.0-or-later WITH AdditionRef-Bison-exception"),
        ("public-domain", "LicenseRef-public-domain"),
        ("our own (v2)!", "LicenseRef-our-own-v2"),
    ],
)
def test_a_copyright_file_of_debian_states_it(field: str, licence: str) -> None:
    answer = detect_licence(
        f"{FORMAT}Files: *\nCopyright: 2026 Ana\nLicense: {field}\n The text.\n"
    )
    assert (answer["licence"], answer["confidence"]) == (licence, 1.0)
    assert answer["evidence"] == [{"kind": "field", "phrase": f"*: {licence}"}]


def test_of_parts_with_other_licences_the_evidence_tells() -> None:
    parts = "Files: a.c\n b.c\nLicense: ISC\n\nFiles: c.c\nLicense: Expat or ISC\n\nLicense: GPL-2\n Text.\n"
    answer = detect_licence(f"{FORMAT}{parts}\nFiles: *\nLicense: GPL-2\n")
    assert (answer["licence"], answer["confidence"]) == ("GPL-2.0-only", 0.7)
    assert [found["phrase"] for found in answer["evidence"]] == [  # type: ignore[attr-defined]
        "a.c b.c: ISC",
        "c.c: MIT OR ISC",
        "*: GPL-2.0-only",
    ]
    assert detect_licence(FORMAT + parts)["licence"] == "ISC AND (MIT OR ISC)"


def test_fields_in_another_file_say_nothing() -> None:
    assert "licence" not in detect_licence("Files: *\nLicense: GPL-2\n")
