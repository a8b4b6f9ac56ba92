"""The features of the forests in words that people read: what a column says, and of what it is."""

import math
from collections.abc import Sequence

from reflexarc.reflex.context import Context

_AUTHORS = {"user": "the user", "assistant": "System 2's last message", "output": "the last result"}
EVENTS, CALLED, AT_HAND = "what happened last", "what was called so far", "values at hand"
_HISTORY: dict[str, tuple[str, str]] = {
    "names_in_output": ("the last result", "names in it: {}"),
    "names_mentioned": ("the last result", "names in it that the user said: {}"),
    "words_mentioned": ("the last result", "words in it that the user said: {}"),
    "calls_since_user": (CALLED, "calls since the user spoke: {}"),
    "user_turns": ("the user", "messages so far: {}"),
    "user_length": ("the user", "characters of the last message: {}"),
    "assistant_length": ("System 2's last message", "its characters: {}"),
    "output_length": ("the last result", "its characters: {}"),
    "events_so_far": (CALLED, "events so far: {}"),
    "user_agrees": ("the user", "begins with a yes: {}"),
    "assistant_asks": ("System 2's last message", "asks something: {}"),
    "assistant_confirms": ("System 2's last message", "asks to confirm: {}"),
    "assistant_yes": ("System 2's last message", "offers (yes/no): {}"),
    "tools_called": (CALLED, "different tools: {}"),
}
_COUNTS = {
    "called": (CALLED, "calls of {} so far: {}"),
    "known": (AT_HAND, "values for {}: {}"),
    "unused": (AT_HAND, "values for {} not used yet: {}"),
}
_EVENT = {"C": "a call of", "O": "a result of", "X": "an error of"}
_ARGUMENT = {
    "hit_rate": "how often this place fills the argument",
    "precision": "how few other values stand in such places",
    "slots": "in how many known places it stands",
    "age_newest": "events since it was last seen",
    "age_oldest": "events since it was first seen",
    "used": "this argument had it before",
    "used_as": "an argument of this name had it before",
    "position": "its position in the message",
    "in_slot": "values in the same place",
    "unused_in_slot": "values in the same place, not used yet",
    "ordinal_unused": "its turn among those not used yet",
    "in_user": "the user's last message holds it",
    "in_assistant": "System 2's last message holds it",
    "record_in_user": "the user's last message names its object",
    "record_in_talk": "the user has named its object",
    "record_in_assistant": "System 2's last message names its object",
    "constant_share": "share of tasks that always take it",
    "made": "how it was made",
    "linked": "its message holds the arguments chosen before",
    "linked_record": "its object holds the arguments chosen before",
    "argument": "which argument it is",
    "length": "items of the list",
    "length_difference": "its length beside the list chosen before",
    "best_in_user": "how far behind the object the user's last message names best",
    "best_in_talk": "how far behind the object the user has named best",
    "best_in_assistant": "how far behind the object System 2's last message names best",
    "newest_output": "it stands in the newest message",
    "best_slot": "rank of its best place",
    "candidates": "how many candidates there are",
    "chosen_before": "an earlier argument has it",
    "step": "how far behind the argument chosen before it stands",
    "cue": "the words before it speak for an argument of this name",
    "cue_own": "the words before it speak for this argument of this tool",
    "cue_after": "the word after it speaks for an argument of this name",
    "cue_behind": "how far behind the best the words before it put it",
    "named_before": "the argument's name is said before it",
    "words_said": "share of its words that the user said",
    "words_said_behind": "how far behind the best its words put it",
    "said_now": "the user's newest message says it",
    "common": "how often users say it",
    "from_end": "how many stand after it in its list",
    "first_said": "the user asks for the first",
    "last_said": "the user asks for the last",
    "all_said": "the user asks for all",
    "named_record": "its object is named like the argument",
    "named_slot": "its place is named like the argument",
    "best_named": "how far behind the object named most like the argument",
}
_CONFIDENCE = {
    "joint": "probability of the whole call",
    "tool_probability": "probability of its tool",
    "argument_probability": "probability of its arguments",
    "least": "probability of its least sure argument",
    "message_probability": "probability of a message",
    "second": "probability of the next best call",
    "lead": "lead over the next best call",
    "calls": "calls that are possible",
    "arguments": "arguments of the call",
    "repeated": "this very call was made before",
    "last_event": "what happened last",
    "calls_since_user": "calls since the user spoke",
    "user_turns": "messages of the user",
    "class_probability": "probability of the likeliest tool or message",
    "verdict_is_call": "a call is likelier than a message",
    "tool": "which tool it is",
    "weakest_slot": "places that agree on the least supported argument",
    "constants": "arguments that are constants",
    "newest_output": "arguments out of the newest message",
    "length": "events so far",
}

_FIT = {
    "name": "the user's words in its name",
    "name_behind": "how far behind the tool whose name the user says best",
    "text": "the user's words in its description",
    "text_behind": "how far behind the tool whose description fits best",
    "said": "it was called after such words",
    "said_behind": "how far behind the tool that was called most after such words",
    "said_most": "it was called after the most telling of these words",
    "part": "it fits a part of the request",
    "part_behind": "how far behind the tool that fits a part best",
    "part_at": "where in the request that part stands",
    "part_after_done": "that part comes after what was done",
    "part_open": "it fits a part not done yet",
    "part_open_behind": "how far behind the tool that fits such a part best",
    "parts": "parts of the request",
    "called": "calls of it since the user spoke",
    "calls_since_user": "calls since the user spoke",
    "called_last": "it was called last",
    "called_ever": "calls of it so far",
    "last_event": "it follows the last event",
    "last_events": "it follows the last three events",
    "shown": "it was called after such words in a result",
    "agent_name_behind": "how far behind the tool that System 2's last message names best",
    "agent_text": "System 2's last words in its description",
    "prior": "how often it is called at all",
    "known": "values for it",
    "unused": "values for it not used yet",
}
OF_CONVERSATION = frozenset(
    ("repeated", "last_event", "calls_since_user", "user_turns", "newest_output", "length")
)
"""Columns of the confidence that are not of the ranking."""


def event_words(symbol: str) -> str:
    """`O:get_order` is "a result of get_order"."""
    kind, colon, tool = symbol.partition(":")
    if colon and kind in _EVENT:
        return f"{_EVENT[kind]} {tool}"
    return {"U": "a message of the user", "M": "a message of System 2"}.get(symbol, symbol)


def history_words(name: str, value: float, context: Context) -> tuple[str, str]:
    """(of what it is, what it says) of one column of `HistoryFeatures.names`, at its value."""
    kind, colon, rest = name.partition(":")
    if name in _HISTORY:
        group, text = _HISTORY[name]
        value = math.expm1(value) if name.endswith("_length") else value
        return group, text.format(_number(value))
    if kind == "lag":
        back = int(rest)
        at = len(context.symbols) - 1 - back
        seen = event_words(context.symbols[at]) if at >= 0 else "nothing, the conversation began"
        return EVENTS, f"{_back(back)}: {seen}"
    if kind == "events":
        return EVENTS, ("" if value else "not ") + _gram(rest)
    if kind in _COUNTS and colon:
        group, text = _COUNTS[kind]
        return group, text.format(rest, _number(value))
    if kind in _AUTHORS and colon:
        return _AUTHORS[kind], f'{"says" if value else "does not say"} "{rest}"'
    return "other", f"{name.replace('_', ' ')}: {_number(value)}"


def argument_words(name: str) -> str:
    """What a column of `argument_features.FEATURES` says of a candidate."""
    return _ARGUMENT.get(name, name.replace("_", " "))


def fit_words(name: str) -> str:
    """What a column of `choice.FEATURES` says of a tool."""
    return _FIT.get(name, name.replace("_", " "))


def confidence_words(name: str) -> str:
    """What a column of `confidence.FEATURES` says of a call."""
    return _CONFIDENCE.get(name, name.replace("_", " "))


def _gram(gram: str) -> str:
    """`0:U` is the last event, `2>O:a|C:a` the last two, newest first."""
    head, sign, rest = gram.partition(">")
    if sign and head.isdigit():
        return f"the last {head} events: {_listed(rest.split('|'))}"
    lag, _, symbol = gram.partition(":")
    return f"{_back(int(lag))}: {event_words(symbol)}" if lag.isdigit() else gram


def _listed(symbols: Sequence[str]) -> str:
    return ", after ".join(event_words(symbol) for symbol in symbols)


def _back(lag: int) -> str:
    return "the last event" if lag == 0 else f"{lag + 1} events back"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
