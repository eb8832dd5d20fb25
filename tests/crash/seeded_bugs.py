"""Deliberate bugs of the log, as replacements in a copy of the package. Each has to be caught.

The calls named are those that show a bug today: where the tool makes other ones, the others are tried, too, which takes
its time. A call 0 is a run that nobody kills.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import cogcli

PACKAGE = Path(cogcli.__file__).resolve().parent


class Bug(NamedTuple):
    """A bug: what is replaced in which file. Caught by tests (`file -k words`), or else by kills of a flow."""

    name: str
    file: str
    good: str
    bad: str
    test: str = ""
    flow: str = "linear"
    kills: tuple[int, ...] = ()
    """The calls at which it is likely to show."""
    doubt: bool = False
    """Whether it shows where a run that was killed in doubt is continued with."""

    @property
    def leg(self) -> dict[str, bool]:
        """Which part of a run is killed."""
        return {"resumed": True, "doubt": True} if self.doubt else {}


BUGS = (
    Bug(
        "effect before its intent",
        "run/engine/call.py",
        "    _record_intent(record, capability, record.member)\n"
        "    answer = yield from _try_chain(record, capability, chain, values)\n",
        "    answer = yield from _try_chain(record, capability, chain, values)\n"
        "    _record_intent(record, capability, record.member)\n",
        kills=(32, 33, 28),
    ),
    Bug(
        "no sync before an effect",
        "episode/journal.py",
        "if self._each or (durable and self._syncs):",
        "if self._each:",
        test="unit/episode/test_journal.py -k each_durability",
    ),
    Bug(
        "a failed sync tried again as if it had worked",
        "episode/journal.py",
        "            fdatasync(self._fd)\n",
        "            try:\n"
        "                fdatasync(self._fd)\n"
        "            except OSError:\n"
        "                fdatasync(self._fd)\n",
        test="unit/episode/test_journal.py -k failed_sync",
    ),
    Bug(
        "an unterminated line accepted",
        "episode/log_lines.py",
        "        self.tail = rest\n",
        "        if rest:\n            yield number + 1, rest\n",
        test="unit/episode/test_reopening.py -k without_its_newline",
    ),
    Bug(
        "a torn tail appended to",
        "episode/reopen.py",
        "        journal.cut(log.end.size)\n",
        "",
        test="unit/episode/test_reopening.py -k cut_at_any_byte",
    ),
    Bug(
        "a short write ignored",
        "episode/folder.py",
        "    if written == len(data):\n        return\n",
        "    return\n",
        test="unit/episode/test_journal.py -k short_write",
    ),
    Bug(
        "what was written in part left in the log",
        "episode/journal.py",
        "            os.ftruncate(self._fd, self._size)\n",
        "            pass\n",
        test="unit/episode/test_journal.py -k cuts_off",
    ),
    Bug(
        "a plain step writes values that were not searched for secrets",
        "episode/journal.py",
        "        if not self._redactor.is_clean(values, names):\n            return None\n",
        "",
        test="unit/run/test_plain_steps.py",
    ),
    Bug(
        "state before its event",
        "episode/seal.py",
        "    evidence = fold.evidence\n",
        "    journal.replace(STATE, to_bytes(document))\n    evidence = fold.evidence\n",
        kills=(86, 87),
    ),
    Bug(
        "the manifest before the documents",
        "episode/seal.py",
        "    journal.replace(LEARN, learn_lines(fold))\n",
        "    journal.replace(MANIFEST, b'{}')\n    journal.replace(LEARN, learn_lines(fold))\n",
        kills=(76, 77),
    ),
    Bug(
        "a file written in place",
        "episode/folder.py",
        "self.rename(temporary, name)",
        "os.close(self.descriptor(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)); self.rename(temporary, name)",
        kills=(83,),
    ),
    Bug(
        "blob after the event that names it",
        "episode/blobs.py",
        "            self._open_folder().replace(name, data, sync=False)\n",
        "            import threading\n"
        "            write = lambda: self._open_folder().replace(name, data, sync=False)\n"
        "            threading.Timer(0.05, write).start()\n",
        flow="blobs",
        kills=(30, 31),
    ),
    Bug(
        "no lock",
        "episode/reopen.py",
        "            lock(fd, wait=False)\n",
        "            pass\n",
        test="unit/episode/test_reopening.py -k comes_second",
    ),
    Bug(
        "the clock believed",
        "episode/journal.py",
        'timestamp, clamped = self._timestamp, "clamped"',
        "pass",
        test="unit/episode/test_journal.py -k steps_back",
    ),
    Bug(
        "going on after a failed write",
        "episode/journal.py",
        "        if self._failed is not None and not (last and self._use_reserve()):",
        "        if False:",
        test="unit/episode/test_journal.py -k cuts_off",
    ),
    Bug(
        "a blind repetition of what is in doubt",
        "run/doubt_decisions.py",
        "        if intent is None or _is_harmless(intent, attempt.effect):\n",
        "        if True:\n",
        kills=(37, 43),
    ),
    Bug(
        "what a person decided in doubt kept to itself",
        "run/doubt_decisions.py",
        "        event = self._journal.append(draft, durable=True)\n",
        "        event = type(intent)(None, '', '', '', None, None, draft.phase, draft.event_type, draft.payload)\n",
        kills=(31, 38),
        doubt=True,
    ),
    Bug(
        "what a killed run may have done forgotten by its rerun",
        "run/effects.py",
        "    if closing is None or decision is not None:\n        return IN_DOUBT, None\n",
        '    if closing is None or decision is not None:\n        return "", None\n',
        kills=(30, 34),
    ),
    Bug(
        "a run with an effect in doubt ended by a full disk",
        "run/results.py",
        "        if over or not any(",
        "        if not over or not any(",
        test="unit/episode/test_ballast.py -k effect_in_doubt",
    ),
    Bug(
        "what was closed without an answer called again",
        "run/log_dispatcher.py",
        "        closing = log.closings.get(key) or log.ended.find_end(attempt.run_id, attempt.step_id)\n",
        "        closing = log.closings.get(key)\n",
        test="unit/run/test_log_dispatcher.py -k never_made",
    ),
    Bug(
        "plan order over the order of the log",
        "run/engine/write_order.py",
        "        if then is not None:  # over a log only steps",
        "        if False:  # by the log only those wait",
        flow="waiting",
        kills=(18,),
    ),
    Bug(
        "the verdict of a gate lost",
        "run/resume_adapters.py",
        "            step_id = StepPath(step_id).owner\n",
        "            pass\n",
        flow="gate",
        kills=(45,),
    ),
    Bug(
        "a manifest without what could not be opened",
        "episode/manifest.py",
        "    except FileNotFoundError:\n        return",
        "    except OSError:\n        return",
        test="unit/episode/test_seal.py -k looked_at",
    ),
    Bug(
        "a decision recorded on a pause",
        "run/engine/run.py",
        "            run.emit(draft_of(RunPaused(reason=reason), run.state.run_id), durable=True)\n",
        "            self._program.end(self, outcome)\n"
        "            run.emit(draft_of(RunPaused(reason=reason), run.state.run_id), durable=True)\n",
        flow="agent",
        kills=(0,),
    ),
    Bug(
        "an agent that sees what its log does not hold",
        "agent/cognition/observer.py",
        "self._close_step(event._replace(payload=mask_payload(event.payload, BY_NAME)))",
        "self._close_step(event)",
        flow="agent",
        kills=(0,),
    ),
    Bug(
        "an approval that was refused used later",
        "run/log_index.py",
        "if event.id not in self._stale and (request",
        "if (request",
        test="cli/test_agent_ends.py -k out_of_its_time",
    ),
    Bug(
        "proposals stored again by who goes on",
        "agent/use_cases/runs.py",
        "turn = self._unstored[0]",
        "turn = self._unstored[0]; "
        "turn = turn._replace(run_id=f\"{turn.run_id}-{__import__('time').time_ns()}\")",
        flow="agent-lanes",
        kills=(149, 148),
    ),
    Bug(
        "the ballast left behind",
        "episode/disk_reserve.py",
        "                self._folder.unlink(BALLAST)\n            self.held = False",
        "                pass\n            self.held = False",
        test="unit/episode/test_ballast.py -k holds_no_ballast",
    ),
)


def planted(bug: Bug, folder: Path) -> Path:
    """A directory with a copy of the package that has this bug."""
    copy = folder / "cogcli"
    shutil.copytree(PACKAGE, copy)
    for name in ("skills", "capabilities", "bindings", "services", "policies"):
        if (PACKAGE.parent / name).is_dir():
            (folder / name).symlink_to(PACKAGE.parent / name)
    file = copy / bug.file
    text = file.read_text(encoding="utf-8")
    assert text.count(bug.good) == 1, (
        f"{bug.name}: the code to replace in {bug.file} is not there once"
    )
    file.write_text(text.replace(bug.good, bug.bad), encoding="utf-8")
    return folder
