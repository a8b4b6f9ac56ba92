"""What an engine documents of its options: the only source that flags of a command can come from.

One data file per engine. An option that is not in it, or a value it does not take, is refused here,
so that no plan can name one.
"""

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Literal, cast

import msgspec

from reflexarc.steps.errors import ConfigError

ENGINES = ("vllm", "sglang", "llamacpp")
Takes = Literal["flag", "int", "float", "text", "choice", "json"]
Value = str | int | float | Mapping[str, str | int | float]


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member of an option's JSON object."""

    name: str
    takes: Takes
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


class Option(Member, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`page` is where the engine documents it; `members` those of its JSON that are known here."""

    page: str
    members: tuple[Member, ...] = ()


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member of a request that the engine takes beside OpenAI's own."""

    name: str
    page: str


class Flag(msgspec.Struct, frozen=True):
    """An option as a plan gives it. `value` is None for one that takes none."""

    option: str
    value: str | None
    why: str
    page: str

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.option,) if self.value is None else (self.option, self.value)


class RequestField(msgspec.Struct, frozen=True):
    """What a request should carry, and why."""

    name: str
    value: str
    why: str
    page: str


class Engine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"options": "option",
             "fields": "field"}):  # fmt: skip
    """One engine in one version. `model` is the option that names the model; empty: the name
    follows `launch` without one."""

    name: str
    version: str
    source: str
    launch: tuple[str, ...]
    model: str
    gpu_vendors: tuple[str, ...]
    model_is: str
    options: tuple[Option, ...]
    fields: tuple[Field, ...]

    def flag(self, option: str, value: Value | None, why: str) -> Flag:
        """Raises `ConfigError` where the engine does not document the option, or not this value."""
        known = next((one for one in self.options if one.name == option), None)
        if known is None:
            raise ConfigError(f"{self.name} {self.version} documents no option {option}")
        text = None if value is None else self._text(known, value)
        if (value is None) != (known.takes == "flag"):
            raise ConfigError(f"{self.name} documents that {option} takes {known.takes}")
        return Flag(option, text, why, known.page)

    def field(self, name: str, value: str, why: str) -> RequestField:
        """The same for a member of requests."""
        known = next((one for one in self.fields if one.name == name), None)
        if known is None:
            raise ConfigError(f"{self.name} {self.version} documents no member {name} of requests")
        return RequestField(name, value, why, known.page)

    def _text(self, option: Option, value: Value) -> str:
        if not isinstance(value, Mapping):
            self._check(option, value, option.name)
            return f"{value:g}" if isinstance(value, float) else str(value)
        if option.takes != "json":
            raise ConfigError(f"{self.name} documents that {option.name} takes {option.takes}")
        members = {member.name: member for member in option.members}
        for name, inner in value.items():
            if name not in members:
                raise ConfigError(f"{self.name} documents no member {name} of {option.name}")
            self._check(members[name], inner, f"{name} of {option.name}")
        return msgspec.json.encode(value).decode()

    def _check(self, member: Member, value: str | int | float, where: str) -> None:
        """Whether a value is one that is documented."""
        fits = {
            "flag": False,
            "json": False,
            "int": isinstance(value, int),
            "float": isinstance(value, int | float),
            "text": isinstance(value, str) and value != "" and not value.startswith("-"),
            "choice": value in member.choices,
        }[member.takes]
        if isinstance(value, int | float):
            fits = fits and (member.least is None or value >= member.least)
            fits = fits and (member.most is None or value <= member.most)
        if not fits:
            choices = f": one of {', '.join(member.choices)}" if member.choices else ""
            raise ConfigError(
                f"{self.name} {self.version} documents that {where} takes {member.takes}{choices}; "
                f"not {value!r}"
            )


def load_engine(name: str) -> Engine:
    """By its short name. Raises `ConfigError` for one that is not known here."""
    if name not in ENGINES:
        raise ConfigError(f"there is no engine {name!r} here; there are {', '.join(ENGINES)}")
    return msgspec.convert(data_file(f"{name}.toml"), Engine)


def data_file(name: str) -> dict[str, object]:
    """One of the data files beside this module."""
    text = resources.files("reflexarc.upstream.engines").joinpath(name).read_text("utf-8")
    return cast("dict[str, object]", tomllib.loads(text))
