"""Which files a call reads or writes, told from its name and arguments. What cannot be told is
nothing: a call that is not understood supersedes no other and is never superseded."""

import re
import shlex
from typing import Any, Literal, cast

import msgspec

from reflexarc.context.pruning_items import CallSaid
from reflexarc.steps import canonical_json


class Touch(msgspec.Struct, frozen=True):
    """A file that a call touches. `part` says which part of it was read: two reads of one path and
    one part show the same place; empty is the whole file."""

    kind: Literal["read", "write"]
    path: str
    part: str = ""


_PATHS = (
    "path", "file_path", "filepath", "filename", "file", "absolute_path", "relative_path",
    "target_file", "notebook_path",
)  # fmt: skip
_READS = frozenset({"read", "view", "cat", "open", "show", "load"})
_WRITES = frozenset(
    {"write", "edit", "create", "replace", "insert", "patch", "update", "save", "append", "undo",
     "str", "delete"}
)  # fmt: skip
_FILES = frozenset({"file", "files", "notebook", "text", "editor"})
_SHELLS = frozenset({"bash", "shell", "sh", "terminal", "execute_bash", "run_command", "exec"})
_FILTERS = frozenset({"head", "tail", "sed", "nl"})
# A text inside a command, up to its end; what follows on the command's own line is kept.
# Nothing is given back: what does not fit at once never would.
_heredoc = re.compile(r"<<-?\s*+(['\"]?)\w++\1([^\n]*+)\n(?s:.*)")
_COMMANDS = ("command", "cmd", "script")
_word = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_MAX_COMMAND_CHARS = 20_000


def touched(call: CallSaid) -> tuple[Touch, ...]:
    """Files that a call touches, in order."""
    arguments = call.arguments
    if arguments is None:
        return ()
    if call.name.lower() in _SHELLS or call.name.lower().endswith("_bash"):
        return _of_shell(arguments)
    path_name = next((name for name in _PATHS if isinstance(arguments.get(name), str)), None)
    if path_name is None:
        return ()
    words = {word.lower() for word in _word.findall(call.name)}
    does = arguments.get("command")
    if isinstance(does, str):  # an editor of several commands
        words = {word.lower() for word in _word.findall(does)} | (words & _FILES)
    path = _normal(cast("str", arguments[path_name]))
    if words & _WRITES:
        return (Touch("write", path),)
    if words & _READS:
        rest = {
            name: value
            for name, value in arguments.items()
            if name not in (path_name, "command") and value is not None
        }
        return (Touch("read", path, canonical_json(rest) if rest else ""),)
    return ()


def _of_shell(arguments: dict[str, Any]) -> tuple[Touch, ...]:
    given: Any = next((arguments[name] for name in _COMMANDS if name in arguments), None)
    if isinstance(given, list):
        parts = [one for one in cast("list[Any]", given) if isinstance(one, str)]
        given = parts[-1] if parts[:1] and parts[0].endswith("sh") else shlex.join(parts)
    if not isinstance(given, str) or len(given) > _MAX_COMMAND_CHARS:
        return ()
    head = (_heredoc.sub(r"\2", given) if "\n" in given else given).strip().replace("\n", " ; ")
    try:
        lexer = shlex.shlex(head, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return ()
    commands: list[list[str]] = [[]]
    piped = True
    for word in words:
        if word in ("&&", "||", ";", "|", "&"):
            piped = piped and (word == "|" or commands[-1][:1] == ["cd"])
            commands.append([])
        else:
            commands[-1].append(word)
    moved = any(one[:1] == ["cd"] for one in commands[1:])
    touches: list[Touch] = []
    base = ""
    for at, command in enumerate(commands):
        if command[:1] == ["cd"] and len(command) == 2:
            base = command[1].rstrip("/") + "/"
            continue
        filters = piped and at > 0 and commands[at - 1][:1] != ["cd"]
        for one in _of_command(command):
            if one.kind == "write" or not filters:
                whole = one.path if one.path.startswith("/") else _normal(base + one.path)
                touches.append(msgspec.structs.replace(one, path=whole))
    writes = [one for one in touches if one.kind == "write"]
    reads = [one for one in touches if one.kind == "read"]
    real = [one for one in commands if one and one[0] != "cd"]
    if moved or len(reads) != 1 or not (piped or len(real) == 1):
        return tuple(writes)  # an output of several commands is more than a file's text
    if len(real) > 1:
        if len(real[0]) < 2 or any(one[0] not in _FILTERS for one in real[1:]):
            return tuple(writes)
        reads = [msgspec.structs.replace(reads[0], part=" ".join(words))]
    return (*writes, *reads)


def _of_command(words: list[str]) -> list[Touch]:
    found: list[Touch] = []
    for at, word in enumerate(words[:-1]):
        if word in (">", ">>", ">|") and words[at + 1] != "/dev/null":
            found.append(Touch("write", _normal(words[at + 1])))
    plain = [word for word in words if not word.startswith("-")]
    if not plain or found:
        return found
    name, options = words[0], [word for word in words[1:] if word.startswith("-")]
    if name == "sed" and any(one.startswith(("-i", "--in-place")) for one in options):
        return [Touch("write", _normal(plain[-1]))] if len(plain) > 2 else []
    if name == "tee":
        return [Touch("write", _normal(one)) for one in plain[1:]]
    if name == "cat" and len(plain) == 2:
        return [Touch("read", _normal(plain[1]), " ".join(options))]
    least = 3 if name == "sed" else 2
    if name in _FILTERS and len(plain) >= least and not plain[-1].isdigit():
        return [Touch("read", _normal(plain[-1]), " ".join(words[:-1]))]
    return []


def _normal(path: str) -> str:
    return path.removeprefix("./")
