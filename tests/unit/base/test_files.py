"""Reading a regular file within a limit, and replacing a whole file at once."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cogcli.base.files import UnreadableFile, read_regular, write_atomic


def refusal(path: str | os.PathLike[str], limit: int = 100) -> UnreadableFile:
    with pytest.raises(UnreadableFile) as caught:
        read_regular(path, limit=limit)
    return caught.value


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Reading


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_a_file_up_to_the_limit_is_read_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * size)
    assert read_regular(path, limit=100) == b"x" * size


def test_a_path_may_be_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    assert read_regular(str(tmp_path / "a"), limit=1) == b"1"


def test_a_file_larger_than_one_read_comes_whole(tmp_path: Path) -> None:
    data = os.urandom(3 * 1024 * 1024 + 7)
    (tmp_path / "a").write_bytes(data)
    assert read_regular(tmp_path / "a", limit=len(data)) == data


def test_one_byte_over_the_limit_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 101)
    refused = refusal(path)
    assert refused.reason == "too-large"
    assert refused.message == "has 101 bytes, at most 100 are allowed"
    assert str(refused) == f"{path}: {refused.message}"


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert refusal(path).reason == "too-large"


def test_a_file_that_claims_no_size_is_still_bounded() -> None:
    path = Path("/proc/self/environ")
    if not path.exists() or path.stat().st_size:
        pytest.skip("no file of unknown size on this system")
    refused = refusal("/proc/cpuinfo", limit=10)
    assert (refused.reason, refused.message) == ("too-large", "has more than 10 bytes")


@pytest.mark.parametrize("name", ["nothing", "file/below", "nul\0byte"])
def test_what_does_not_exist_is_missing(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert refusal(f"{tmp_path}/{name}").reason == "missing"


def test_a_link_that_leads_nowhere_is_missing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    assert refusal(tmp_path / "link").reason == "missing"


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link", limit=9) == b"x"


def test_a_link_to_itself_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "link")
    assert refusal(tmp_path / "link").reason == "unreadable"


def test_a_directory_is_not_regular(tmp_path: Path) -> None:
    refused = refusal(tmp_path)
    assert (refused.reason, refused.message) == (
        "not-regular",
        "is a directory, not a regular file",
    )


def test_an_endless_device_is_not_regular() -> None:
    refused = refusal("/dev/zero")
    assert (refused.reason, refused.message) == ("not-regular", "is a device, not a regular file")


def test_a_pipe_without_a_writer_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reasons: list[str] = []
    thread = threading.Thread(
        target=lambda: reasons.append(refusal(tmp_path / "pipe").message), daemon=True
    )
    thread.start()
    thread.join(60)
    assert reasons == ["is a named pipe, not a regular file"]


def test_a_socket_is_not_regular(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # socket paths are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert refusal("socket").reason == "not-regular"


def test_a_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    refused = refusal(path)
    assert (refused.reason, refused.message) == ("unreadable", "cannot be read: Permission denied")


def test_a_file_that_fails_while_it_is_read_is_unreadable() -> None:
    if not os.access("/proc/self/mem", os.R_OK):
        pytest.skip("no file that cannot be read from its start on this system")
    refused = refusal("/proc/self/mem")
    assert (refused.reason, refused.message) == ("unreadable", "cannot be read: Input/output error")


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 5)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    read_regular(tmp_path / "a", limit=5)
    refusal(tmp_path / "a", limit=4)
    refusal(tmp_path)
    write_atomic(tmp_path / "b", b"1")
    after = len(os.listdir("/proc/self/fd")) if before else 0
    assert after == before


# Writing


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"one")
    write_atomic(tmp_path / "a", b"two")
    assert read_regular(tmp_path / "a", limit=9) == b"two"
    assert os.listdir(tmp_path) == ["a"]


def test_an_empty_file_can_be_written(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"")
    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_never_replaced_nor_a_link_to_one_or_to_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to("pipe")
    (tmp_path / "to-device").symlink_to(os.devnull)
    for name, kind in (
        ("pipe", "a named pipe"),
        ("to-pipe", "a named pipe"),
        ("to-device", "a device"),
    ):
        with pytest.raises(OSError, match=f"is {kind}, not a regular file"):
            write_atomic(tmp_path / name, b"x")
    assert sorted(os.listdir(tmp_path)) == ["pipe", "to-device", "to-pipe"]
    assert (tmp_path / "to-pipe").is_symlink()
    (tmp_path / "to-nothing").symlink_to("nothing")
    write_atomic(tmp_path / "to-nothing", b"x")
    assert not (tmp_path / "to-nothing").is_symlink()


def test_a_name_without_a_folder_is_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomic("a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_the_longest_name_a_folder_allows_can_be_written(tmp_path: Path) -> None:
    write_atomic(tmp_path / ("n" * 255), b"x")
    assert os.listdir(tmp_path) == ["n" * 255]


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_exact_whatever_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_atomic(tmp_path / "a", b"x", mode=mode)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "a") == mode


def test_a_file_is_private_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o666)
    write_atomic(tmp_path / "a", b"new")
    assert mode_of(tmp_path / "a") == 0o600


def test_a_link_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomic(tmp_path / "link", b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"old"


def test_short_writes_are_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: whole(handle, bytes(data)[:3]))
    write_atomic(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_disk_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "write", lambda handle, data: 0)
    with pytest.raises(OSError, match="took no bytes"):
        write_atomic(tmp_path / "a", b"new")
    assert (os.listdir(tmp_path), (tmp_path / "a").read_bytes()) == (["a"], b"old")


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_a_failing_call_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "broken disk")

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="broken disk"):
        write_atomic(tmp_path / "a", b"new")
    assert (os.listdir(tmp_path), (tmp_path / "a").read_bytes()) == (["a"], b"old")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    program = (
        "import sys; from cogcli.base.files import write_atomic\n"
        "try: write_atomic(sys.argv[1], b'x' * 100_000)\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    limit = (10_000, 10_000)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "OSError\n"
    assert (os.listdir(tmp_path), (tmp_path / "a").read_bytes()) == (["a"], b"old")


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "no" / "a", b"x")


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "a"
    contents = [bytes([65 + i]) * 50_000 for i in range(4)]
    write_atomic(path, contents[0])
    stop = threading.Event()

    def write() -> None:
        for turn in range(40):
            write_atomic(path, contents[turn % 4])
        stop.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not stop.is_set():
        seen.add(read_regular(path, limit=50_000))
    thread.join()
    assert seen <= set(contents)


def test_importing_needs_no_heavy_module() -> None:
    heavy = ("typing", "pathlib", "tempfile", "contextlib")
    program = (
        f"import sys, cogcli.base.files; print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        timeout=30,
    )
    assert done.stdout == "[]\n"


def test_without_replace_what_is_there_stays_even_where_it_came_last(tmp_path: Path) -> None:
    """Nobody looks first: of several writers at once one is the first, and the others are told."""
    path = tmp_path / "new.txt"

    def write(number: int) -> bool:
        try:
            write_atomic(path, b"%d" % number, replace=False)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(write, range(8)))
    assert placed.count(True) == 1
    assert path.read_bytes() == b"%d" % placed.index(True)
    assert os.listdir(tmp_path) == ["new.txt"]


def test_where_files_have_one_name_only_a_new_one_is_still_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    write_atomic(tmp_path / "new.txt", b"1", replace=False)
    with pytest.raises(FileExistsError):
        write_atomic(tmp_path / "new.txt", b"2", replace=False)
    assert (tmp_path / "new.txt").read_bytes() == b"1"
    assert os.listdir(tmp_path) == ["new.txt"]
