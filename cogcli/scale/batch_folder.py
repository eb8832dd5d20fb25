"""The folder of a batch: its header, the sums of its input, and for each shard its ledger and how it was last run
(docs/reference/batch.md#files).

1. The header is written once, exclusively. A MAC with the user's key covers it: a header of unknown origin could
   grant a run permissions, or name results that were never computed.
2. Folders are opened as those of episodes are: no link is followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Final

import orjson

from cogcli.base.canonical import canonical
from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.batch_records import BatchHeader, ShardCommand
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.archive.directories import BATCHES
from cogcli.episode.folder import Folder, disk_refusal, write_all
from cogcli.scale.identity import is_batch_id
from cogcli.scale.ledger import Ledger, LedgerReading, read_ledger

HEADER: Final = "batch.json"
SUMS: Final = "input.sums"
LINES: Final = "input.jsonl"
"""The lines of an input that is not a file of JSON lines."""
NEWEST: Final = "ba_last"
_PERSON: Final = b"cogcli/batch/1"
_LARGEST: Final = 64 * 1024 * 1024


class Shard(NamedTuple):
    """One part of a batch: the lines whose number, counted from 0, is `place` modulo `parts`."""

    place: int = 0
    parts: int = 1

    @property
    def name(self) -> str:
        """The shard as `I/N`, from 1."""
        return f"{self.place + 1}/{self.parts}"

    @property
    def suffix(self) -> str:
        """The suffix of the shard's file names. Empty if the batch has one shard."""
        return "" if self.parts == 1 else f"-{self.place + 1}-of-{self.parts}"

    @property
    def ledger(self) -> str:
        """The file name of the shard's ledger."""
        return f"ledger{self.suffix}.jsonl"

    @property
    def command(self) -> str:
        """The name of the file that records the command of the shard's last run."""
        return f"command{self.suffix}.json"

    def has(self, line: int) -> bool:
        """Return whether a line belongs to the shard."""
        return (line - 1) % self.parts == self.place

    def count_lines(self, lines: int) -> int:
        """Return how many of the first `lines` lines belong to the shard."""
        return (lines - self.place + self.parts - 1) // self.parts


def batches_dir(runs_dir: str) -> Path:
    """Return the directory of all batches."""
    return Path(runs_dir) / BATCHES


class BatchFolder:
    """The open folder of one batch. Close it, or use it in a `with`."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.batch_id = folder.path.name

    @classmethod
    def open(cls, runs_dir: str, batch_id: str) -> BatchFolder:
        """Open the folder of a batch. Raise UsageError `batch.unknown`."""
        path = batches_dir(runs_dir) / batch_id
        try:
            return cls(Folder.open(path))
        except OSError as error:
            raise unknown_batch_error(batch_id) from error

    @classmethod
    def make(cls, runs_dir: str, batch_id: str) -> BatchFolder:
        """Open the folder of a batch, creating it if necessary. Raise UnusableEnvironment."""
        path = batches_dir(runs_dir) / batch_id
        try:
            return cls(Folder.open(path, make=True))
        except OSError as error:
            text = f"no batch can be kept in `{path}`: {error.strerror or error}"
            raise UnusableEnvironment("env.runs-dir", text) from error

    def __enter__(self) -> BatchFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        self.folder.close()

    # -- header --------------------------------------------------------------------------------------------------------

    def create_header(self, header: BatchHeader, key: bytes) -> BatchHeader:
        """Write the header unless one exists, and return the header on disk. Raise UnusableEnvironment."""
        unsigned = header.replace(mac="")
        signed = header.replace(mac=_authentication_code(unsigned.json, key))
        data = orjson.dumps(signed.json, option=orjson.OPT_INDENT_2) + b"\n"
        temporary = f".tmp-{os.urandom(8).hex()}"
        place = self.folder.path / HEADER
        try:
            fd = self.folder.create(temporary, os.O_WRONLY)
            try:
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            self._place_header(temporary)
            self.folder.sync_with_parent()
        except OSError as error:
            raise disk_refusal(place, error) from error
        return self.read_header(key)

    def _place_header(self, temporary: str) -> None:
        """Rename the temporary file to the header's name, unless another process has already created a header."""
        path = self.folder.path
        try:
            os.link(path / temporary, path / HEADER)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not self.folder.holds(HEADER):
                self.folder.rename(temporary, HEADER)
                return
        self.folder.unlink(temporary)

    def find_header(self, key: bytes) -> BatchHeader | None:
        """Return the header, or None if it does not exist. Raise UnusableEnvironment."""
        return self.read_header(key) if self.folder.holds(HEADER) else None

    def read_header(self, key: bytes) -> BatchHeader:
        """Return the header, after checking that this user wrote it. Raise UnusableEnvironment `batch.foreign` or
        `batch.damaged`.
        """
        header = read_header(self.folder)
        unsigned = header.replace(mac="")
        if not compare_digest(_authentication_code(unsigned.json, key), header.mac):
            raise UnusableEnvironment(
                "batch.foreign",
                f"`{self.batch_id}` is not known to be yours: no key of yours vouches for its {HEADER}",
                hint="run it under another --batch-name, or in a runs directory of your own",
            )
        return header

    # -- shards --------------------------------------------------------------------------------------------------------

    def open_ledger(self, shard: Shard) -> Ledger:
        """Open and lock the ledger of a shard. Raise UnusableEnvironment `batch.busy`, `batch.damaged`, `env.disk`."""
        try:
            return Ledger(self.folder, shard.ledger, self.batch_id, shard.name)
        except BlockingIOError as error:
            command = self.find_command(shard)
            who = f"process {command.pid} on {command.host}" if command else "another process"
            raise UnusableEnvironment(
                "batch.busy",
                f"`{self.batch_id}` is run by {who}",
                hint="wait for it to end, or stop it: the same command then continues the batch",
            ) from error

    def read_ledger(self, shard: Shard) -> LedgerReading:
        """Return the reading of a shard's ledger."""
        return read_ledger(self.folder, shard.ledger, self.batch_id, shard.name)

    def write_command(self, shard: Shard, command: ShardCommand, key: bytes) -> None:
        """Record the command that runs a shard. The caller must hold the shard's ledger. Raise UnusableEnvironment
        `env.disk`.
        """
        signed = command.replace(mac=_authentication_code(command.json, key))
        self.folder.replace(shard.command, orjson.dumps(signed.json) + b"\n", sync=False)

    def read_own_command(self, shard: Shard, key: bytes) -> ShardCommand:
        """Return the command of a shard's last run. Raise UnusableEnvironment `batch.foreign` if this user did not
        write it, because a foreign command could name any output.
        """
        command = self.find_command(shard)
        unsigned = {} if command is None else {**command.json}
        mac = str(unsigned.pop("mac", ""))
        if command is None or not compare_digest(_authentication_code(unsigned, key), mac):
            raise UnusableEnvironment(
                "batch.foreign",
                f"`{self.batch_id}`: how it was run is not known to be yours",
                hint="run the whole command again: cogcli run SKILL --batch ... -o ...",
            )
        return command

    def find_command(self, shard: Shard) -> ShardCommand | None:
        """Return the command of a shard's last run; None if no command is recorded."""
        try:
            return read_record(ShardCommand, _read_json(self.folder, shard.command), whole=True)
        except (UnreadableFile, ValueError):
            return None

    def shards(self) -> list[Shard]:
        """Return the shards that have a ledger, in order."""
        return find_shards(self.folder.names(), "ledger", ".jsonl")


def find_shards(names: Iterable[str], stem: str, ending: str = "") -> list[Shard]:
    """Return the shards that have a file of this kind, in order."""
    found = set()
    for name in names:
        words = name.removesuffix(ending).split("-")
        if name == f"{stem}{ending}":
            found.add(Shard())
        elif len(words) == 4 and words[1].isdecimal() and words[3].isdecimal():
            shard = Shard(int(words[1]) - 1, max(1, int(words[3])))
            found |= {shard} if name == f"{stem}{shard.suffix}{ending}" else set()
    return sorted(found, key=lambda shard: (shard.parts, shard.place))


def _authentication_code(json: Json, key: bytes) -> str:
    """Return the message authentication code of a document, in hex."""
    return blake2b(canonical(json), key=key, digest_size=32, person=_PERSON).hexdigest()


def read_header(folder: Folder) -> BatchHeader:
    """Return the header of a batch without checking who wrote it. Raise UnusableEnvironment `batch.damaged`."""
    try:
        return read_record(BatchHeader, _read_json(folder, HEADER), whole=True)
    except (UnreadableFile, ValueError) as error:
        text = f"`{folder.path.name}`: {HEADER} cannot be read: {error}"
        hint = "run it under another --batch-name"
        raise UnusableEnvironment("batch.damaged", text, hint=hint) from error


def _read_json(folder: Folder, name: str) -> object:
    """Return the JSON in a file of the batch folder. Raise UnreadableFile or ValueError."""
    value: object = orjson.loads(folder.read(name, limit=_LARGEST))
    return value


def batch_ids(runs_dir: str) -> list[str]:
    """Return the ids of all batches of a runs directory, sorted."""
    try:
        names = os.listdir(batches_dir(runs_dir))
    except OSError:
        return []
    return sorted(filter(is_batch_id, names))


def find_batch(runs_dir: str, text: str) -> str:
    """Return the id of the batch that matches a user's text. The text is an id, its beginning, or `ba_last` for the
    newest batch. Raise UsageError `batch.unknown`.
    """
    if text == NEWEST:
        newest = max(_creation_times(runs_dir), default=(0, ""))[1]
        found = [newest] if newest else []
    else:
        found = [id for id in batch_ids(runs_dir) if id.startswith(text)] if len(text) >= 7 else []
    if len(found) != 1:
        raise unknown_batch_error(text, found)
    return found[0]


def _creation_times(runs_dir: str) -> Iterator[tuple[int, str]]:
    """Yield time and id of each batch with a readable header."""
    for id in batch_ids(runs_dir):
        with suppress(CogcliError), BatchFolder.open(runs_dir, id) as batch:
            yield read_header(batch.folder).created_ms, id


def unknown_batch_error(text: str, found: list[str] | None = None) -> UsageError:
    """Return the error for a text that matches no batch or several."""
    what = f"fits {len(found)} batches" if found else "is no batch here"
    names = ", ".join((found or [])[:10])
    expected = "the id of a batch, four or more characters of it after ba_, or ba_last"
    return UsageError("batch.unknown", f"`{text:.80}` {what}", expected=expected, found=names)


def batches_with_output(runs_dir: str, output: str) -> Iterator[str]:
    """Yield the ids of the batches whose last run wrote to this file."""
    for id in batch_ids(runs_dir):
        with BatchFolder.open(runs_dir, id) as batch:
            commands = [batch.find_command(shard) for shard in batch.shards()]
        if any(command is not None and command.output == output for command in commands):
            yield id
