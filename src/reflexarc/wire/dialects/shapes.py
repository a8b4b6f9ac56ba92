"""The few checks that readers of requests share: a value's shape, or a `RequestError` with its
path. And pulling members out of an object, so that what is left is what nobody knew."""

from typing import Any, cast

from reflexarc.steps.errors import RequestError


class Members:
    """An object's members, taken one by one. Null members count as absent; those left over are
    `rest`."""

    def __init__(self, value: Any, path: str) -> None:
        self.path = path
        self._left = {k: v for k, v in as_object(value, path).items() if v is not None}

    def take(self, name: str) -> Any:
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        value = self.take(name)
        if value is None or isinstance(value, str):
            return value
        raise fault(self.at(name), "must be a string", value)

    def needed_text(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise fault(self.at(name), "is missing")
        return value

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if value is None or isinstance(value, bool):
            return value
        raise fault(self.at(name), "must be true or false", value)

    def number(self, name: str) -> float | None:
        value = self.take(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise fault(self.at(name), "must be a number", value)

    def whole(self, name: str) -> int | None:
        value = self.take(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise fault(self.at(name), "must be a whole number", value)

    def object(self, name: str) -> dict[str, Any] | None:
        value = self.take(name)
        return None if value is None else as_object(value, self.at(name))

    def list(self, name: str) -> list[Any] | None:
        value = self.take(name)
        return None if value is None else as_list(value, self.at(name))

    def members(self, name: str) -> "Members | None":
        value = self.take(name)
        return None if value is None else Members(value, self.at(name))

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    @property
    def rest(self) -> dict[str, Any]:
        return self._left


def as_object(value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise fault(path, "must be an object", value)


def as_list(value: Any, path: str) -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    raise fault(path, "must be a list", value)


def texts(value: Any, path: str) -> tuple[str, ...]:
    """A list of strings, or one string."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    listed = as_list(value, path)
    for at, item in enumerate(listed):
        if not isinstance(item, str):
            raise fault(f"{path}[{at}]", "must be a string", item)
    return tuple(cast("list[str]", listed))


_ABSENT = object()


def fault(path: str, what: str, value: Any = _ABSENT) -> RequestError:
    """`value`, where given, is shown, cut short."""
    shown = "" if value is _ABSENT else f", not {_short(value)}"
    return RequestError(f"{path or 'the body'} {what}{shown}", param=path or None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
