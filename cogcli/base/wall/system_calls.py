"""A seccomp filter for the system calls that the wall refuses
(docs/reference/service.md#isolation).

The filter lists what is refused. Calls that are newer than the table are refused, too, unless
`_NEWER` lists them. The numbers are those of the kernel's headers; they never change.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from cogcli.base.named_tuple import NamedTuple

_REFUSED: Final = """
ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
kcmp 312 272
add_key 248 217
request_key 249 218
keyctl 250 219
socket 41 198
connect 42 203
bind 49 200
listen 50 201
accept 43 202
accept4 288 242
sendmsg 46 211
sendmmsg 307 269
shmget 29 194
shmat 30 196
shmctl 31 195
shmdt 67 197
semget 64 190
semop 65 193
semtimedop 220 192
semctl 66 191
msgget 68 186
msgsnd 69 189
msgrcv 70 188
msgctl 71 187
mq_open 240 180
mq_unlink 241 181
mq_timedsend 242 182
mq_timedreceive 243 183
mq_notify 244 184
mq_getsetattr 245 185
bpf 321 280
perf_event_open 298 241
userfaultfd 323 282
mount 165 40
umount2 166 39
pivot_root 155 41
chroot 161 51
unshare 272 97
setns 308 268
swapon 167 224
swapoff 168 225
kexec_load 246 104
kexec_file_load 320 294
init_module 175 105
finit_module 313 273
delete_module 176 106
reboot 169 142
iopl 172 -
ioperm 173 -
acct 163 89
quotactl 179 60
sethostname 170 161
setdomainname 171 162
syslog 103 116
settimeofday 164 170
clock_settime 227 112
clock_adjtime 305 266
adjtimex 159 171
lookup_dcookie 212 18
nfsservctl 180 42
name_to_handle_at 303 264
open_by_handle_at 304 265
fanotify_init 300 262
fanotify_mark 301 263
inotify_init 253 -
inotify_init1 294 26
inotify_add_watch 254 27
vhangup 153 58
uselib 134 -
modify_ldt 154 -
personality 135 92
migrate_pages 256 238
move_pages 279 239
truncate 76 45
chmod 90 -
fchmod 91 52
fchmodat 268 53
chown 92 -
fchown 93 55
lchown 94 -
fchownat 260 54
setxattr 188 5
lsetxattr 189 6
fsetxattr 190 7
removexattr 197 14
lremovexattr 198 15
fremovexattr 199 16
utime 132 -
utimes 235 -
futimesat 261 -
utimensat 280 88
mknod 133 -
mknodat 259 33
setpriority 141 140
ioprio_set 251 30
setsid 112 157
setpgid 109 154
fork 57 -
vfork 58 -
"""
_SIGNALS: Final = """
kill 62 129
tkill 200 130
tgkill 234 131
rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240
"""
_PROGRAMS: Final = """
execve 59 221
execveat 322 281
"""
_ONLY_ITSELF: Final = """
prlimit64 302 261
sched_setaffinity 203 122
sched_setscheduler 144 119
sched_setparam 142 118
sched_setattr 314 274
"""
"""Their first argument is a process; 0 is the calling one."""
_BY_ARGUMENT: Final = """
clone 56 220
open 2 -
openat 257 56
socketpair 53 199
sendto 44 206
ioctl 16 29
prctl 157 167
fcntl 72 25
"""
_NEWER_THAN: Final = 424
_NEWER: Final = {"close_range": 436, "faccessat2": 439, "epoll_pwait2": 441, "futex_waitv": 449,
                 "map_shadow_stack": 453, "mseal": 462}  # fmt: skip
"""The allowed calls from 424 on, whose numbers are the same on all machines."""

_EPERM, _ENOSYS = 1, 38
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32: Final = 0x40000000
_CLONE_THREAD: Final = 0x00010000
_ACCESS_MODE, _TRUNCATE = 3, 0o1000
_UNIX, _STREAM, _SOCKET_FLAGS = 1, 1, 0o2004000
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
_SIGNAL_OWNERS: Final = (8, 10, 15)
"""`fcntl` F_SETOWN, F_SETSIG and F_SETOWN_EX: they make the kernel send a signal to a process."""
_DEATH_SIGNAL: Final = 1


class Machine(NamedTuple):
    """A kind of processor: its audit number, and the column of its system calls."""

    audit: int
    column: int


MACHINES: Final = {"x86_64": Machine(0xC000003E, 1), "aarch64": Machine(0xC00000B7, 2)}
LANDLOCK: Final = (444, 445, 446)
"""Create a rule set, add a rule, restrict oneself; the same on all machines."""
ADD_KEY: Final = {"x86_64": 248, "aarch64": 217}
KEYCTL: Final = {"x86_64": 250, "aarch64": 219}


def filter_program(machine: Machine, *, signals: bool, programs: bool) -> bytes:
    """Return the filter in the kernel's format.

    `signals`: whether signals may be sent, because another part of the wall confines them.
    `programs`: whether the process may replace itself by a program."""
    lines = [*_machine_check(machine)]
    refused = _parse_numbers(_REFUSED, machine)
    refused |= {} if signals else _parse_numbers(_SIGNALS, machine)
    refused |= {} if programs else _parse_numbers(_PROGRAMS, machine)
    for number in sorted(refused.values()):
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    for number in _parse_numbers(_ONLY_ITSELF, machine).values():
        lines += _for_system_call(number, _unless_equal(0, (0,)))
    for name, number in _parse_numbers(_BY_ARGUMENT, machine).items():
        lines += _for_system_call(number, _RULES[name]())
    lines += [(_AT_LEAST, 0, len(_NEWER) + 1, _NEWER_THAN)]
    for index, number in enumerate(_NEWER.values()):
        lines.append((_EQUAL, len(_NEWER) - index, 0, number))
    lines += [(_RETURN, 0, 0, _ERRNO | _ENOSYS), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


Line = tuple[int, int, int, int]
"""An instruction: its operation, the lines to skip if its condition is true and if it is false, and a number."""


def _machine_check(machine: Machine) -> Iterator[Line]:
    """Yield the lines that end a process if it uses the calls of another machine. Calls of x32 fail as nonexistent."""
    yield (_LOAD, 0, 0, _ARCH_AT)
    yield (_EQUAL, 1, 0, machine.audit)
    yield (_RETURN, 0, 0, _KILL)
    yield (_LOAD, 0, 0, _NUMBER_AT)
    yield (_AT_LEAST, 0, 1, _X32)
    yield (_RETURN, 0, 0, _ERRNO | _ENOSYS)


def _for_system_call(number: int, rule: list[Line]) -> list[Line]:
    """Return the lines of a rule for one system call. The rule ends with a decision."""
    return [(_EQUAL, 0, len(rule), number), *rule]


def _unless_equal(
    argument: int, allowed_numbers: tuple[int, ...], mask: int = 0xFFFFFFFF
) -> list[Line]:
    """Return lines that refuse the call unless the low half of an argument is one of these numbers."""
    lines: list[Line] = [_load_half(argument), (_AND, 0, 0, mask)]
    for index, number in enumerate(allowed_numbers):
        lines.append((_EQUAL, len(allowed_numbers) - index, 0, number))
    return [*lines, (_RETURN, 0, 0, _ERRNO | _EPERM), (_RETURN, 0, 0, _ALLOW)]


def _if_equal(argument: int, refused_numbers: tuple[int, ...]) -> list[Line]:
    """Return lines that refuse the call if the low half of an argument is one of these numbers."""
    lines: list[Line] = [_load_half(argument)]
    for index, number in enumerate(refused_numbers):
        lines.append((_EQUAL, len(refused_numbers) - index, 0, number))
    return [*lines, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | _EPERM)]


def _load_half(argument: int, *, high: bool = False) -> Line:
    """Return the line that loads half of an argument."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument + (4 if high else 0))


def _allow_only_threads() -> list[Line]:
    """Return lines that let `clone` create threads but not processes."""
    return [
        _load_half(0),
        (_ANY_BIT, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _refuse_truncation(argument: int) -> list[Line]:
    """Return lines that refuse to truncate a file that is opened for reading.

    Older versions of Landlock allow that.
    """
    return [
        _load_half(argument),
        (_ANY_BIT, 0, 2, _TRUNCATE),
        (_ANY_BIT, 1, 0, _ACCESS_MODE),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _allow_only_stream_pairs() -> list[Line]:
    """Return lines that allow only pairs of connected streams, which `asyncio` needs.

    A pair of datagram sockets could be reconnected elsewhere.
    """
    family = [_load_half(0), (_EQUAL, 1, 0, _UNIX), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    return [*family, *_unless_equal(1, (_STREAM,), 0xFFFFFFFF & ~_SOCKET_FLAGS)]


def _refuse_destination() -> list[Line]:
    """Return lines that refuse to send to an explicit address."""
    refuse = (_RETURN, 0, 0, _ERRNO | _EPERM)
    low = [_load_half(4), (_EQUAL, 1, 0, 0), refuse]
    return [*low, _load_half(4, high=True), (_EQUAL, 1, 0, 0), refuse, (_RETURN, 0, 0, _ALLOW)]


_RULES: Final[dict[str, Callable[[], list[Line]]]] = {
    "clone": _allow_only_threads,
    "open": lambda: _refuse_truncation(1),
    "openat": lambda: _refuse_truncation(2),
    "socketpair": _allow_only_stream_pairs,
    "sendto": _refuse_destination,
    "ioctl": lambda: _if_equal(1, _TERMINAL_INPUT),
    "prctl": lambda: _if_equal(0, (_DEATH_SIGNAL,)),
    "fcntl": lambda: _if_equal(1, _SIGNAL_OWNERS),
}


def _parse_numbers(table: str, machine: Machine) -> dict[str, int]:
    """Return the system call numbers of a machine by name."""
    rows = (line.split() for line in table.strip().splitlines())
    return {row[0]: int(row[machine.column]) for row in rows if row[machine.column] != "-"}
