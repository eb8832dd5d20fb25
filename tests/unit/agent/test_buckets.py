"""Token buckets: allocation and assembly (docs/reference/pack.md#buckets)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cogcli.agent.context.buckets import FIXED, allocate, assemble
from cogcli.agent.context.compiled import ContextBlock
from cogcli.agent.context.tokenizer import ESTIMATE, Tokenizer, estimate
from cogcli.declarations.pack_spec import BUCKETS

SENTENCES = "One is here. Two is there! Three? Four and more words follow."
BLOCKS = st.lists(
    st.tuples(st.sampled_from(BUCKETS), st.integers(0, 3), st.integers(1, 4), st.booleans()),
    max_size=12,
)


def _block(
    id: str, bucket: str, priority: int, content: str, *, cuttable: bool = False
) -> ContextBlock:
    return ContextBlock(id, bucket, content, priority, estimate(content), cuttable=cuttable)


@given(BLOCKS, st.dictionaries(st.sampled_from(BUCKETS), st.integers(0, 60)), st.integers(0, 150))
def test_nothing_is_lost_in_silence_and_low_never_displaces_high(
    made: list[tuple[str, int, int, bool]], caps: dict[str, int], total: int
) -> None:
    blocks = [
        _block(f"b{number:02}", bucket, priority, SENTENCES * size, cuttable=cuttable)
        for number, (bucket, priority, size, cuttable) in enumerate(made)
    ]
    allocations = allocate(blocks, caps, total)
    assert sum(allocations.values()) <= total
    found = assemble(blocks, allocations, ESTIMATE)
    included = {block.block_id: block for block in found.blocks}
    left = {each.block_id for each in found.omissions if each.reason == "no_room"}
    cut = {each.block_id for each in found.omissions if each.reason == "cut"}
    assert included.keys() | left == {block.block_id for block in blocks}
    assert not included.keys() & left
    assert cut == {id for id, block in included.items() if block.truncated}
    assert cut == {id for id, block in included.items() if "[truncated: " in block.content}
    for bucket in BUCKETS:
        tokens = sum(block.tokens for block in found.blocks if block.bucket == bucket)
        assert tokens == found.used[bucket] <= allocations[bucket]
        kept = [
            (-b.priority, b.block_id)
            for b in blocks
            if b.bucket == bucket and b.block_id in included
        ]
        gone = [
            (-b.priority, b.block_id) for b in blocks if b.bucket == bucket and b.block_id in left
        ]
        assert not kept or not gone or max(kept) < min(gone)
    assert found.overpacked is any(each.bucket in FIXED for each in found.omissions)


def test_buckets_are_served_in_order_and_the_rest_is_spent() -> None:
    blocks = [_block(bucket, bucket, 1, "word " * 10) for bucket in BUCKETS]
    each = blocks[0].tokens
    assert allocate(blocks, {}, 6 * each) == dict.fromkeys(BUCKETS, each)
    caps = {"policy": 2, "tool": 2}
    allocations = allocate(blocks, caps, 2 * each)
    assert [allocations[bucket] for bucket in FIXED] == [each, each], "they are useless with less"
    assert allocate(blocks, {"evidence": 2}, 3 * each + 4)["evidence"] == 2
    assert allocate(blocks, caps, 6 * each) == dict.fromkeys(BUCKETS, each)


def test_a_block_ends_at_a_sentence_and_says_how_much_is_missing() -> None:
    block = _block("returns", "business", 1, SENTENCES, cuttable=True)
    found = assemble([block], {**dict.fromkeys(BUCKETS, 0), "business": 15}, ESTIMATE)
    (kept,) = found.blocks
    assert kept.truncated
    assert kept.content.startswith("One is here. Two is there!")
    assert kept.content.endswith(" tokens]")
    assert "[truncated: " in kept.content
    assert [(each.block_id, each.reason) for each in found.omissions] == [("returns", "cut")]


def test_a_cut_leaves_a_sentence_out_and_a_token_at_least_whatever_the_tokenizer_says() -> None:
    odd = Tokenizer("odd/1", False, "", lambda text: 3 if "truncated" in text else 8)
    block = ContextBlock("returns", "business", "One. Two.", 1, 8, cuttable=True)
    found = assemble([block], {**dict.fromkeys(BUCKETS, 0), "business": 5}, odd)
    assert [kept.content for kept in found.blocks] == ["One. [truncated: 1 tokens]"]


def test_only_what_never_shrinks_is_overpacked() -> None:
    allocations = dict.fromkeys(BUCKETS, 0)
    over = [
        each
        for each in BUCKETS
        if assemble([_block("b", each, 1, "x")], allocations, ESTIMATE).overpacked
    ]
    assert over == ["policy", "tool"]


def test_a_block_that_may_not_be_cut_leaves_whole() -> None:
    block = _block("returns", "business", 1, SENTENCES)
    found = assemble([block], {**dict.fromkeys(BUCKETS, 0), "business": 15}, ESTIMATE)
    assert found.blocks == ()
    assert [each.reason for each in found.omissions] == ["no_room"]
