"""What a conversion could not say in its target, collected and named in one header.

x-reflexarc-warning: messages cannot express: logit_bias, tools.web_search
"""

MAX_NAMED = 40
MAX_NAME_CHARS = 80
HEADER = b"x-reflexarc-warning"


class Losses:
    """`target` is the dialect that could not say them."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._named: dict[str, None] = {}

    def lose(self, what: str) -> None:
        """Names a member or a kind of part in the words of the dialect it came in, the same one
        once: `logit_bias`, `tools.web_search`, `content.input_audio`, `tool_result.image`."""
        self._named.setdefault(what, None)

    def lose_all(self, what: "dict[str, object]", under: str = "") -> None:
        """Every member of an object that only another dialect knows, but for those that are
        null."""
        for name, value in what.items():
            if value is not None:
                self.lose(f"{under}{name}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._named)

    def text(self) -> str:
        """For the header or a comment; empty where nothing was lost. Printable ASCII only: names
        come from outside."""
        if not self._named:
            return ""
        shown = [_shown(name) for name in list(self._named)[:MAX_NAMED]]
        left = len(self._named) - len(shown)
        rest = f", and {left} more" if left else ""
        return f"{self._target} cannot express: {', '.join(shown)}{rest}"


def _shown(name: str) -> str:
    cut = name[:MAX_NAME_CHARS]
    return "".join(c if " " <= c <= "~" and c != "," else "?" for c in cut)
