"""Stages 6 and 7, `budget` and `assembly`: tokens of six buckets, and the blocks that fit into them. Pure.

The omissions list each removed or shortened block with its reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.agent.context.compiled import ContextBlock, Omission
from cogcli.agent.context.tokenizer import Tokenizer
from cogcli.agent.context.truncation import SENTENCE_END, mark_truncated
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import BUCKETS

FIXED: Final = ("policy", "tool")
"""Buckets that never shrink, since their blocks apply to every call."""


class Assembly(NamedTuple):
    """The blocks that fit, in the order of the buckets, and the omissions. `overpacked`: a bucket that never shrinks
    does not fit."""

    blocks: tuple[ContextBlock, ...]
    omissions: tuple[Omission, ...]
    used: dict[str, int]
    overpacked: bool


def bucket_limit(limits: Mapping[str, int | float], bucket: str, default: float) -> int:
    """Return the maximum tokens of a bucket under the limits of a run; `default` without a limit."""
    return int(limits.get(f"buckets.{bucket}", default))


def allocate(
    candidates: Iterable[ContextBlock], caps: Mapping[str, int], total: int
) -> dict[str, int]:
    """Return the tokens of each bucket: at most its cap and its need, in the order of the buckets. A second round
    spends the rest. A bucket that never shrinks gets its need in the first round, since it is useless with less.
    """
    need: dict[str, int] = dict.fromkeys(BUCKETS, 0)
    for block in candidates:
        need[block.bucket] += block.tokens
    allocations, rest = {}, total
    for bucket in BUCKETS:
        cap = total if bucket in FIXED else caps.get(bucket, total)
        allocations[bucket] = min(cap, need[bucket], rest)
        rest -= allocations[bucket]
    for bucket in BUCKETS:
        more = min(rest, need[bucket] - allocations[bucket])
        allocations[bucket] += more
        rest -= more
    return allocations


def assemble(
    candidates: Iterable[ContextBlock], allocations: Mapping[str, int], tokenizer: Tokenizer
) -> Assembly:
    """Fill each bucket to its allocation. The lowest priority is omitted first, then the highest id.

    The first block that does not fit is truncated at a sentence if it is cuttable.
    """
    by_bucket: dict[str, list[ContextBlock]] = defaultdict(list)
    for block in candidates:
        by_bucket[block.bucket].append(block)
    blocks: list[ContextBlock] = []
    omissions: list[Omission] = []
    used: dict[str, int] = {}
    for bucket in BUCKETS:
        waiting = sorted(by_bucket[bucket], key=lambda block: (-block.priority, block.block_id))
        room = allocations[bucket]
        while waiting and waiting[0].tokens <= room:
            block = waiting.pop(0)
            blocks.append(block)
            room -= block.tokens
        if (
            waiting
            and waiting[0].cuttable
            and (short := _shorten_block(waiting[0], room, tokenizer))
        ):
            omissions.append(
                omission_of(waiting[0]._replace(tokens=waiting[0].tokens - short.tokens), "cut")
            )
            blocks.append(short)
            room -= short.tokens
            waiting.pop(0)
        omissions += [omission_of(block, "no_room") for block in waiting]
        used[bucket] = allocations[bucket] - room
    overpacked = any(each.bucket in FIXED for each in omissions)
    return Assembly(tuple(blocks), tuple(omissions), used, overpacked)


def omission_of(block: ContextBlock, reason: str) -> Omission:
    """Return the omission of a block."""
    return Omission(block.block_id, block.bucket, block.priority, block.tokens, reason)


def _shorten_block(
    block: ContextBlock, max_tokens: int, tokenizer: Tokenizer
) -> ContextBlock | None:
    """Return the block up to the last sentence that fits, with a marker of the missing tokens, or None if no
    sentence fits.
    """
    for end in reversed([match.end() for match in SENTENCE_END.finditer(block.content)]):
        kept = block.content[:end]
        missing = max(1, block.tokens - tokenizer.count(kept))
        content = mark_truncated(kept, missing)
        tokens = tokenizer.count(content)
        if end < len(block.content.rstrip()) and tokens <= max_tokens:
            return block._replace(content=content, tokens=tokens, truncated=True)
    return None
