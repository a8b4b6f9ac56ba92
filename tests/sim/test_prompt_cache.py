"""The prompt cache: block-granular longest common prefixes, bounded, with a least size."""

from hypothesis import given
from hypothesis import strategies as st

from reflexarc.sim import PrefixCache

BLOCK = 16  # tokens, 64 bytes
PROMPT = bytes(range(256)) * 8  # 2,048 bytes, 512 tokens, 32 blocks, no two alike in place


def ask(cache: PrefixCache, prompt: bytes) -> int:
    """One request from its arrival to the end of its prefill."""
    cached_tokens = cache.lookup(prompt)
    cache.remember(prompt)
    return cached_tokens


def test_a_prompt_is_not_cached_before_it_was_read() -> None:
    cache = PrefixCache(BLOCK, 0, 100_000)
    assert cache.lookup(PROMPT) == cache.lookup(PROMPT) == 0
    cache.remember(PROMPT)
    assert cache.lookup(PROMPT) == 512


def test_a_first_prompt_has_nothing_cached_and_the_same_again_all_of_it() -> None:
    cache = PrefixCache(BLOCK, 0, 100_000)
    assert ask(cache, PROMPT) == 0
    assert ask(cache, PROMPT) == 512


def test_an_unfilled_last_block_is_never_cached() -> None:
    cache = PrefixCache(BLOCK, 0, 100_000)
    ask(cache, PROMPT[:100])
    assert ask(cache, PROMPT[:100]) == BLOCK


def test_a_change_near_the_end_keeps_what_stands_before_it() -> None:
    cache = PrefixCache(BLOCK, 0, 100_000)
    ask(cache, PROMPT)
    changed = PROMPT[:1000] + b"!" + PROMPT[1001:]
    assert ask(cache, changed) == 1000 // 64 * BLOCK


def test_a_block_counts_only_after_the_one_before_it() -> None:
    cache = PrefixCache(BLOCK, 0, 100_000)
    ask(cache, PROMPT)
    assert ask(cache, b"!" + PROMPT[1:]) == 0


def test_a_hit_below_the_least_size_does_not_count() -> None:
    cache = PrefixCache(BLOCK, 256, 100_000)
    ask(cache, PROMPT)
    assert ask(cache, PROMPT[:1023] + b"~") == 0  # 240 tokens
    assert ask(cache, PROMPT[:1024] + b"~") == 256


def test_the_least_recently_used_prompt_is_forgotten_first() -> None:
    cache = PrefixCache(BLOCK, 0, 1024)
    first, second, third = (bytes([n]) * 2048 for n in (1, 2, 3))
    ask(cache, first)
    ask(cache, second)
    assert ask(cache, first) == 512
    ask(cache, third)
    assert ask(cache, first) == 512
    assert ask(cache, second) == 0


def test_without_capacity_nothing_is_ever_cached() -> None:
    cache = PrefixCache(BLOCK, 0, 0)
    ask(cache, PROMPT)
    assert ask(cache, PROMPT) == 0


@given(st.lists(st.binary(max_size=400), min_size=1, max_size=12), st.binary(max_size=400))
def test_what_is_cached_is_the_longest_common_prefix_in_whole_blocks(
    earlier: list[bytes], prompt: bytes
) -> None:
    cache = PrefixCache(2, 0, 1_000_000)
    for one in earlier:
        ask(cache, one)
    longest = max(
        next((i for i, (a, b) in enumerate(zip(one, prompt, strict=False)) if a != b), None)
        or (min(len(one), len(prompt)) if one[:1] == prompt[:1] else 0)
        for one in earlier
    )
    assert ask(cache, prompt) == longest // 8 * 2
