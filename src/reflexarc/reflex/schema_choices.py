"""The values a tool's schema says an argument may take: enumerations, and what a description lists
in quotation marks."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.steps import Session, ToolSpec

MAX_CHOICES = 16
_MAX_CHARS = 4_000
_LONGEST_SECTION = 500
MAX_EXAMPLES = 3
LONGEST_EXAMPLE = 60
_BY_NAME = re.compile(r"(\w{1,60})\s?=\s?[\"']([^\"'\n]{1,60})[\"']")
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,60})[\"'`]")
_EXAMPLES = re.compile(r"^[ \t]*(?:examples?|returns?)\b|>>>", re.IGNORECASE | re.MULTILINE)
_LISTS = re.compile(
    r"\b(?:one of|available|possible|allowed|valid|supported|can be|must be|either|options?"
    r"|choices|choose|values?)\b",
    re.IGNORECASE,
)


def common_examples(sessions: Iterable[Session]) -> dict[str, dict[str, list[Any]]]:
    """What `example_values` gives, of the schemas of at least three tasks."""
    return _common(sessions, example_values)


def common_choices(sessions: Iterable[Session]) -> dict[str, dict[str, list[Any]]]:
    """Choices by tool and argument that the schemas of at least three tasks list: what a schema
    lists for one task alone (the orders of its user, say) is that task's own."""
    return _common(sessions, schema_choices)


def _common(
    sessions: Iterable[Session], listed_by: Callable[[ToolSpec], dict[str, list[Any]]]
) -> dict[str, dict[str, list[Any]]]:
    specs: dict[tuple[str, str], ToolSpec] = {}
    offered: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for session in sessions:
        for tool in session.tools:
            key = (tool.name, tool.schema_hash)
            specs.setdefault(key, tool)
            offered[key].add(session.task)
    listed: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    values: dict[tuple[str, str, str], Any] = {}
    for key in sorted(specs, key=lambda key: (-len(offered[key]), key)):
        for name, choices in listed_by(specs[key]).items():
            for value in choices:
                where = (key[0], name, f"{type(value).__name__}:{plain_text(value)}")
                values.setdefault(where, value)
                listed[where] |= offered[key]
    found: defaultdict[str, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for where, value in values.items():
        if len(listed[where]) >= MIN_TASKS:
            found[where[0]][where[1]].append(value)
    return {tool: dict(arguments) for tool, arguments in found.items()}


def parameter_names(spec: ToolSpec) -> list[str]:
    """The names of a tool's arguments, as its schema gives them."""
    properties = spec.parameters.get("properties")
    return list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []


def schema_choices(spec: ToolSpec) -> dict[str, list[Any]]:
    """Choices by argument; of arguments without any, nothing."""
    properties = spec.parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    fields = cast("dict[str, Any]", properties)
    found: dict[str, list[Any]] = {}
    for name, value in fields.items():
        schema = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        enumerated = schema.get("enum")
        if isinstance(enumerated, list):
            choices = [
                one
                for one in cast("list[Any]", enumerated)
                if isinstance(one, str | int | float | bool)
            ]
        else:
            choices = _listed(str(schema.get("description", ""))[:_LONGEST_SECTION])
            choices = choices or _listed(_section(spec.description[:_MAX_CHARS], name, fields))
        if choices and len(choices) <= MAX_CHOICES:
            found[name] = choices
    return found


def example_values(spec: ToolSpec) -> dict[str, list[Any]]:
    """Texts that a schema gives as examples, by argument: of JSON Schema's `examples`, `example`
    and `default`, and of calls in the description, `search("a", "b")` or `search(name="a")`."""
    names = parameter_names(spec)
    found: defaultdict[str, dict[Any, None]] = defaultdict(dict)
    for name in names:
        schema = cast("dict[str, Any]", spec.parameters["properties"])[name]
        if isinstance(schema, dict):
            given = cast("dict[str, Any]", schema)
            several = given.get("examples")
            listed = cast("list[Any]", several) if isinstance(several, list) else []
            for one in [*listed[:MAX_EXAMPLES], given.get("example"), given.get("default")]:
                if isinstance(one, str) and 0 < len(one) <= LONGEST_EXAMPLE:
                    found[name][one] = None
    last = re.escape(spec.name.rpartition(".")[2])
    for match in islice(
        re.finditer(rf"\b{last}\(([^()\n]{{1,400}})\)", spec.description[:_MAX_CHARS]),
        MAX_EXAMPLES,
    ):
        by_name = _BY_NAME.findall(match[1])
        pairs = by_name or zip(names, _QUOTED.findall(match[1]), strict=False)
        for name, value in pairs:
            if name in names:
                found[name][value] = None
    return {name: list(values)[:MAX_EXAMPLES] for name, values in found.items()}


def _listed(text: str) -> list[Any]:
    """Two quotations or more after words that announce a list; the text's examples apart."""
    ends = _EXAMPLES.search(text)
    text = text[: ends.start()] if ends else text
    announced = _LISTS.search(text)
    if announced is None:
        return []
    quoted = dict.fromkeys(_QUOTED.findall(text, announced.end()))
    return list(quoted) if len(quoted) > 1 else []


def _section(description: str, name: str, names: dict[str, Any]) -> str:
    """The lines of a tool's description about one argument: from its name to the next one's."""
    start = re.search(rf"^[ \t\-*:]*{re.escape(name)}[ \t]*:", description, re.MULTILINE)
    if start is None:
        return ""
    end = start.end() + _LONGEST_SECTION
    for other in names:
        after = re.search(
            rf"^[ \t\-*:]*{re.escape(other)}[ \t]*:", description[start.end() :], re.MULTILINE
        )
        if other != name and after is not None:
            end = min(end, start.end() + after.start())
    return description[start.end() : end]
