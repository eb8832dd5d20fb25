"""Shipped skills on files that others wrote, of Debian and of the Python distribution: `python tooling/real_files.py`
writes docs/reference/real-files.md anew from what the commands print on this machine.

A `Sample` is a skill, the lines that run it, and what must hold of its answer whatever version of the file is there;
`tests/docs/test_real_files.py` runs all of them. Of files that are not on this machine the page keeps what it shows.
"""

from __future__ import annotations

import ast
import csv
import email
import email.policy
import gzip
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from html import unescape
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/real-files.md"
PYLIB = sysconfig.get_path("stdlib")
HEAD = """# Skills on real files

What shipped skills say of files that no one made for them, of Debian packages and of the Python distribution. Each
entry names the file and the version that was read; lists and long texts are shortened where it says so. What is said
to hold does so for any version of the file: a test runs the commands and checks it wherever the file is there, and
compares what is shown where file and libraries are the same. `python tooling/real_files.py` writes this page.

<a id="start"></a>
## Start

In an empty directory of your own, which then may read files elsewhere:

```sh
cogcli config trust --folder
export PYLIB=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
```
"""
_LIST, _TEXT, _LINE = 3, 300, 110
_BASE = "/usr/share/doc/base-files"
_ISO = "/usr/share/iso-codes/json"
_MIME = "/usr/share/doc/shared-mime-info/shared-mime-info-spec"

Answer = dict[str, Any]
Held = Iterator[tuple[str, bool]]


class Sample(NamedTuple):
    """A skill on files: what is asked, where they are, the Debian package they are of (empty: Python), the lines that
    ask, the outputs that the page shows, what holds of the answer, and the libraries that the answer hangs on."""

    skill: str
    asks: str
    paths: tuple[str, ...]
    package: str
    lines: tuple[str, ...]
    shows: tuple[str, ...]
    holds: Callable[[Path, Answer], Held]
    libraries: tuple[str, ...] = ()

    @property
    def place(self) -> Path:
        """Where the first of the files, or the folder, is on this machine."""
        return Path(self.paths[0].replace("$PYLIB", PYLIB))

    @property
    def absence(self) -> str:
        """Why it cannot be read here; empty where it can."""
        missing = [
            path
            for path in self.paths
            if not any(file.stat().st_size for file in self._files(path))
        ]
        of = (
            f"Debian package {self.package}"
            if self.package
            else "the Python distribution with its tests"
        )
        return f"{missing[0]} is not here, or empty ({of})" if missing else ""

    def _files(self, path: str) -> list[Path]:
        """A file itself, or those of a folder that the pattern of the command names."""
        place = Path(path.replace("$PYLIB", PYLIB))
        pattern = re.search(r"pattern=([^']+)", " ".join(self.lines))
        found = place.rglob(pattern[1] if pattern else "*") if place.is_dir() else [place]
        return sorted(
            file for file in found if file.is_file() and (file == place or not file.is_symlink())
        )

    def fingerprint(self) -> str:
        """Which files these are, and what reads them: the digest of all bytes, and the versions of libraries."""
        content = b"".join(file.read_bytes() for path in self.paths for file in self._files(path))
        digest = f"SHA-256 {hashlib.sha256(content).hexdigest()[:16]}..."
        return ", ".join([digest, *(f"{name} {version(name)}" for name in self.libraries)])


def _licences(folder: Path, answer: Answer) -> Held:
    told = {file["file"]: file["licence"] for file in answer["files"]}
    names = {file.name for file in folder.iterdir() if file.is_file() and not file.is_symlink()}
    versions = {name for name in names if re.search(r"-\d", name)}
    yield (
        "each file is reported once, a link to one is not",
        told.keys() == names and len(answer["files"]) == len(told),
    )
    yield "none is unknown", answer["unknown"] == []
    yield (
        "where the name has a version, as `GPL-2`, the file is that licence in that version",
        all(told[name] in (name, f"{name}.0") for name in versions),
    )
    yield "`BSD` is `BSD-3-Clause`", told["BSD"] == "BSD-3-Clause"


def _contract(file: Path, answer: Answer) -> Held:
    text = file.read_text(encoding="utf-8")
    titles = [clause["title"] for clause in answer["clauses"] if clause["level"]]
    open_places = [risk["line"] for risk in answer["risks"] if risk["kind"] == "placeholder"]
    yield (
        "its clauses are those that the text numbers, in order",
        titles
        == [" ".join(found.split()) for found in re.findall(r"(?m)^ {3}(\d+\. [^.]+\.)", text)],
    )
    yield (
        "the place that is left open for a name is found at its line",
        open_places == [text[: text.index("[yyyy]")].count("\n") + 1],
    )
    yield (
        "of what is reported as missing the text has no word",
        {"nothing on governing law", "nothing on confidentiality"}
        == {gap["message"] for gap in answer["missing"]}
        and not re.search("(?i)governing law|jurisdiction|confidential", text),
    )


def _changelog(file: Path, answer: Answer) -> Held:
    first = gzip.decompress(file.read_bytes()).decode().partition(";")[0]
    yield "one entry is new", [entry["state"] for entry in answer["added"]] == ["added"]
    yield (
        "its title is the first line of the changelog: package, version, distribution",
        (answer["added"][0]["title"] == first),
    )


def _difference(file: Path, answer: Answer) -> Held:
    before, after = (
        file.read_text(encoding="utf-8"),
        file.with_name("ntpath.py").read_text(encoding="utf-8"),
    )
    old, new = _definitions(before), _definitions(after)
    summary = str(answer["summary"])
    added, removed = map(int, re.findall(r"\d+", summary)[:2])
    told = {
        word: set(names.split(", ")) for word, names in re.findall(r"(\w+): ([\w, ]+)[;.]", summary)
    }
    yield (
        "lines added less lines removed are what the second file is longer",
        (added - removed == after.count("\n") - before.count("\n")),
    )
    yield (
        "`new` are the functions that by Python's own parser only the second has",
        (told["new"] == new.keys() - old.keys()),
    )
    yield "`gone` those that only the first has", told["gone"] == old.keys() - new.keys()
    yield (
        "`changed` has every function whose syntax tree is another one",
        (
            " more" in summary
            or told["changed"] >= {name for name in old.keys() & new if old[name] != new[name]}
        ),
    )


def _definitions(code: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.setdefault(node.name, []).append(ast.dump(node))
    return found


def _secrets(folder: Path, answer: Answer) -> Held:
    places = [
        (found, (folder / entry["file"]).read_text(encoding="utf-8"))
        for entry in answer["findings"]
        for found in entry["findings"]
    ]
    values = {text[found["start"] : found["end"]] for found, text in places}
    yield (
        "every file of such a name is read",
        answer["scanned"] == len(list(folder.rglob("test_u*.py"))),
    )
    yield "it is clean just where nothing is found", answer["clean"] == (not places)
    yield (
        "each finding lies in the line that is named",
        all(text.count("\n", 0, found["start"]) + 1 == found["line"] for found, text in places),
    )
    told = json.dumps(answer)
    yield (
        "no value stands in the answer, as a word of its own",
        not any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", told) for value in values),
    )


def _inbox(file: Path, answer: Answer) -> Held:
    with file.open("rb") as opened:
        message = email.message_from_binary_file(opened, policy=email.policy.default)
    (told,) = answer["messages"]
    yield (
        "subject and sender are those that Python's parser of mail reads",
        (
            told["subject"] == message["subject"]
            and told["from"][0]["address"] in str(message["from"])
        ),
    )
    yield (
        "the text is there, without the head",
        told["text"].startswith("Hi,") and "Received" not in told["text"],
    )
    yield (
        "it asks a question, so it needs a reply",
        [mail["id"] for mail in answer["needs_reply"]] == [told["id"]],
    )
    yield "nothing was passed over", answer["skipped"] == 0


def _table(file: Path, answer: Answer) -> Held:
    with file.open(encoding="utf-8", newline="") as opened:
        head, *rows = csv.reader(opened)
    columns = dict(zip(head, zip_longest(*rows, fillvalue=""), strict=False))
    filled = {name: sum(bool(cell) for cell in cells) for name, cells in columns.items()}
    yield "there is a row for each line below the first", answer["row_count"] == len(rows)
    yield (
        "of each column it is reported how many cells are filled",
        ({column["name"]: column["filled"] for column in answer["columns"]} == filled),
    )
    yield (
        "each line with fewer cells than the first is reported",
        (
            [problem["line"] for problem in answer["problems"]]
            == [number for number, row in enumerate(rows, 2) if len(row) != len(head)]
        ),
    )


def _data(file: Path, answer: Answer) -> Held:
    ((_, countries),) = json.loads(file.read_text(encoding="utf-8")).items()
    fields = {field["name"]: field for field in answer["fields"]}
    yield (
        "the file fits the schema that its own package ships",
        answer["valid"] and answer["errors"] == [],
    )
    yield "each country is a record", answer["record_count"] == len(countries)
    yield (
        "no two have the same code",
        fields["alpha_2"]["distinct"] == fields["numeric"]["distinct"] == len(countries),
    )
    yield (
        "every code has two letters",
        (fields["alpha_2"]["min_length"], fields["alpha_2"]["max_length"]) == (2, 2),
    )


def _page(file: Path, answer: Answer) -> Held:
    html = file.read_text(encoding="utf-8")
    title = re.search(r"(?is)<title\s*>(.*?)</title\s*>", html)
    yield (
        "the title is that of the page",
        title is not None and answer["title"].split() == title[1].split(),
    )
    yield (
        "each sentence of the summary stands in the page",
        _quoted(answer["summary"], _words(html)),
    )
    yield (
        "each link is one of the page",
        all(link["href"] in unescape(html) for link in answer["links"]),
    )


def _pdf(file: Path, answer: Answer) -> Held:
    source = gzip.decompress(file.with_suffix(".xml.gz").read_bytes()).decode()
    yield (
        "the title is that of the source that the PDF was made of",
        f"<title>{answer['title']}</title>" in source,
    )
    yield (
        "each sentence of the summary stands in that source",
        _quoted(answer["summary"], _words(source)),
    )


def _log(file: Path, answer: Answer) -> Held:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    yield (
        "each line is an event, in the window of its time",
        (sum(window["events"] for window in answer["timeline"]) == len(lines)),
    )
    yield (
        "the first window begins with the first line",
        (lines[0].replace(" ", "T").startswith(answer["timeline"][0]["start"])),
    )
    yield (
        "packages with `error` in their name are no errors",
        (answer["severity"], answer["first_fault"]) == ("none", {}),
    )


def _words(markup: str) -> str:
    """The text of HTML or XML without tags and blanks."""
    return "".join(unescape(re.sub(r"<[^>]*>", "", markup)).split())


def _quoted(summary: str, text: str) -> bool:
    """Whether each sentence stands in a text without blanks; marks of Markdown do not count."""
    sentences = re.split(r"(?<=[.!?]) ", re.sub(r"[`*]", "", summary))
    return bool(summary) and all("".join(sentence.split()) in text for sentence in sentences)


SAMPLES = (
    Sample(
        "licence.overview", "Which licence is each of the texts that Debian ships once for all packages?",
        ("/usr/share/common-licenses",), "base-files",
        ("cogcli run licence.overview -p path=/usr/share/common-licenses",),
        ("files", "unknown"), _licences,
    ),
    Sample(
        "contract.review", "What is in the Apache licence, read as a contract, and what should one look at?",
        ("/usr/share/common-licenses/Apache-2.0",), "base-files",
        ("cogcli run contract.review -p path=/usr/share/common-licenses/Apache-2.0",),
        ("clauses", "missing", "risks", "level"), _contract, ("snowballstemmer",),
    ),
    Sample(
        "changelog.compare", "What came with the newest version of a Debian package?",
        (f"{_BASE}/changelog.gz",), "base-files",
        (
            f"zcat {_BASE}/changelog.gz > new.txt",
            "sed '1,/^ -- /d' new.txt > old.txt",
            "cogcli run changelog.compare -p old=@old.txt -p new=@new.txt",
        ),
        ("added",), _changelog,
    ),
    Sample(
        "code.diff-summary", "How do Python's paths of Windows differ from those of POSIX?",
        ("$PYLIB/posixpath.py", "$PYLIB/ntpath.py"), "",
        ("cogcli run code.diff-summary -p code_a=@$PYLIB/posixpath.py -p code_b=@$PYLIB/ntpath.py",),
        ("summary", "diff"), _difference,
    ),
    Sample(
        "secrets.scan", "Are there passwords in Python's tests of addresses?",
        ("$PYLIB/test",), "",
        ("cogcli run secrets.scan -p path=$PYLIB/test -p 'pattern=test_u*.py'",),
        ("clean", "findings", "scanned", "unread"), _secrets,
    ),
    Sample(
        "inbox.summary", "What does a mail say, and does it want an answer?",
        ("$PYLIB/test/test_email/data/msg_01.txt",), "",
        ("cogcli run inbox.summary -p path=$PYLIB/test/test_email/data/msg_01.txt",),
        ("messages", "needs_reply", "skipped"), _inbox,
    ),
    Sample(
        "table.profile", "What is in the table of Debian's releases?",
        ("/usr/share/distro-info/debian.csv",), "distro-info-data",
        ("cogcli run table.profile -p path=/usr/share/distro-info/debian.csv",),
        ("row_count", "columns", "problems"), _table,
    ),
    Sample(
        "data.check", "Is the list of all countries what its schema says?",
        (f"{_ISO}/iso_3166-1.json", f"{_ISO}/schema-3166-1.json"), "iso-codes",
        (f"cogcli run data.check -p data=@{_ISO}/iso_3166-1.json -p schema=@{_ISO}/schema-3166-1.json",),
        ("valid", "errors", "record_count", "fields"), _data,
    ),
    Sample(
        "web.brief", "What is a page of documentation about?",
        ("/usr/share/doc/base-passwd/users-and-groups.html",), "base-passwd",
        ("cogcli run web.brief -p html=@/usr/share/doc/base-passwd/users-and-groups.html",),
        ("title", "summary", "keywords", "links"), _page, ("trafilatura", "snowballstemmer"),
    ),
    Sample(
        "pdf.brief", "What is a specification about?",
        (f"{_MIME}.pdf", f"{_MIME}.xml.gz"), "shared-mime-info",
        (f"cogcli run pdf.brief -p path={_MIME}.pdf",),
        ("title", "page_count", "summary", "keywords"), _pdf, ("pypdf", "snowballstemmer"),
    ),
    Sample(
        "incident.triage", "Did anything fail as packages were installed? `dpkg` writes this file.",
        ("/var/log/dpkg.log",), "dpkg",
        ("cogcli run incident.triage -p path=/var/log/dpkg.log",),
        ("timeline", "first_fault", "severity"), _log,
    ),
)  # fmt: skip


def shown(sample: Sample, answer: Answer) -> str:
    """What the page shows of an answer, and which outputs it leaves out."""
    picked = {name: _shortened(answer[name]) for name in sample.shows}
    left = [f"`{name}`" for name in answer if name not in picked]
    note = f"\nNot shown: {', '.join(left)}.\n" if left else ""
    return f"```text\n{_written(picked, 0)}\n```\n{note}"


def _written(value: Any, indent: int) -> str:
    """JSON, in one line where that is short enough."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + len(line) <= _LINE or not isinstance(value, dict | list) or not value:
        return line
    names = (
        [f"{json.dumps(name)}: " for name in value]
        if isinstance(value, dict)
        else [""] * len(value)
    )
    inner = value.values() if isinstance(value, dict) else value
    lines = [f"{name}{_written(one, indent + 2)}" for name, one in zip(names, inner, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    blanks = " " * indent
    return f"{opening}\n{blanks}  " + f",\n{blanks}  ".join(lines) + f"\n{blanks}{closing}"


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(inner) for name, inner in value.items()}
    if isinstance(value, list):
        more = len(value) - _LIST
        return [_shortened(inner) for inner in value[:_LIST]] + (
            [f"... {more} more"] if more > 0 else []
        )
    if isinstance(value, str) and len(value) > _TEXT + 40:
        return f"{value[:_TEXT]}... {len(value) - _TEXT} more characters"
    return value


def entry(sample: Sample, answer: Answer) -> str:
    """The part of the page that is about a sample."""
    failed = [words for words, held in sample.holds(sample.place, answer) if not held]
    assert not failed, f"{sample.skill}: {failed}"
    commands = "\n".join(sample.lines)
    paths = ", ".join(f"`{path}`" for path in sample.paths)
    claims = "".join(f"- {words}\n" for words, _ in sample.holds(sample.place, answer))
    return (
        f'<a id="{anchor(sample)}"></a>\n## {sample.skill}\n\n{sample.asks}\n\nRead: {paths} of {_origin(sample)}\n'
        f"({sample.fingerprint()}).\n\n```sh\n{commands}\n```\n\n{shown(sample, answer)}\nWhat holds:\n\n{claims}"
    )


def anchor(sample: Sample) -> str:
    """The id of its heading."""
    return sample.skill.replace(".", "-")


def _origin(sample: Sample) -> str:
    if not sample.package:
        return f"Python {platform.python_version()}"
    asked = ["dpkg-query", "-W", "-f", "${Version}", sample.package]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return f"Debian's {sample.package} {told}"


def recorded() -> dict[str, str]:
    """The entries of the page as it is, by the id of their heading."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    parts = re.split(r'(?m)^(?=<a id="([\w-]+)"></a>$)', text)[1:]
    return {
        name: part.rstrip("\n") + "\n" for name, part in zip(parts[::2], parts[1::2], strict=True)
    }


def main() -> int:
    """Write the page; what cannot be read here stays as it is and is named."""
    before = recorded()
    parts = [HEAD]
    for sample in SAMPLES:
        if why := sample.absence:
            print(f"kept: {why}", file=sys.stderr)
            parts += [before[anchor(sample)]] if anchor(sample) in before else []
        else:
            parts.append(entry(sample, _ran(sample)))
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(PAGE)
    return 0


def _ran(sample: Sample) -> Answer:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with TemporaryDirectory() as folder:
        env = os.environ | {
            "PATH": path,
            "PYLIB": PYLIB,
            "HOME": folder,
            "COGCLI_TRUST_PROJECT": "1",
        }
        script = "\n".join(sample.lines)
        command = [
            "bash",
            "-euc",
            script.replace("cogcli run", f"cogcli --runs-dir {folder}/episodes run"),
        ]
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    answer: Answer = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    sys.exit(main())
