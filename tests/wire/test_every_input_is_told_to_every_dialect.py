"""The golden matrix: what every input becomes in every dialect is what was read and kept."""

from pathlib import Path

import pytest

from reflexarc.wire.dialects import NAMES
from tests.wire.matrix.cells import HERE, SORTS, Input, inputs, left_over, told

KINDS_OF_FAULT = (
    "parallel_calls_given_one_index",
    "interleaved_argument_deltas_merged",
    "a_whole_call_in_one_chunk_losing_its_arguments",
    "text_then_tools_ending_as_end_turn",
    "a_truncated_stream_turned_into_a_clean_stop_with_invented_usage",
    "an_id_or_a_name_doubled",
    "two_tool_results_sent_as_two_user_turns",
    "thinking_dropped_beside_tool_use",
    "nullable_object_schemas_losing_inner_properties",
    "additional_properties_removed",
    "tool_results_holding_ref_treated_as_schemas",
    "empty_parameters_sent_as_null",
    "a_chunk_without_choices_crashing_the_stream",
    "usage_lost_or_counted_twice",
    "the_usage_chunk_carrying_a_choice",
    "errors_in_the_wrong_dialects_body_or_with_the_wrong_status",
    "retry_hints_dropped",
    "over_long_ids_replayed_to_an_upstream_that_refuses_them",
    "keys_reordered_on_the_way",
    "memo_or_cache_keys_that_omit_tool_choice",
)
"""Faults that gateways are known for. Each has an input that shows it cannot happen."""


@pytest.mark.parametrize("given", list(inputs()), ids=lambda given: given.title)
def test_every_input_becomes_what_was_kept(given: Input) -> None:
    for target in NAMES:
        kept = given.snapshot(target)
        assert kept.exists(), f"{kept.relative_to(HERE)} is missing: make matrix, and read it"
        assert told(given, target) == kept.read_bytes().decode(), (
            f"{kept.relative_to(HERE)} differs: mend the conversion, or make matrix and read it"
        )


def test_no_snapshot_is_left_without_its_input() -> None:
    assert left_over() == []


def test_every_directory_holds_one_input() -> None:
    directories = [path for sort in SORTS for path in (HERE / sort).iterdir()]
    wrong = [path for path in directories if len(list(path.glob("from.*"))) != 1]
    assert wrong == []
    assert len(directories) >= 40


@pytest.mark.parametrize("kind", KINDS_OF_FAULT)
def test_every_kind_of_fault_has_its_input(kind: str) -> None:
    found: list[Path] = [path for sort in SORTS if (path := HERE / sort / kind).is_dir()]
    assert found, f"no input is called {kind}"


def test_every_dialect_brings_requests_answers_streams_and_faults() -> None:
    brought = {(given.sort, given.origin) for given in inputs()}
    asked = {
        (sort, name) for sort in ("requests", "answers", "streams", "faults") for name in NAMES
    }
    assert asked <= brought
