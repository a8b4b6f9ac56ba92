"""What a message mentions beyond single tokens: quotations, names of several words, what follows
"called" or "about", and tokens by what they are, whatever their shape: a number, an address.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from reflexarc.provenance.times import number_of

_MAX_CHARS = 20_000
_MAX_FOUND = 24
_MAX_TYPED = 60
_MAX_OPENED = 80
_MAX_CLOSED = 40
_LONGEST_QUOTED = 600
_LONGEST_NAMED = 120
_LONGEST_CUED = 90
_OPEN = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“"}
_OPENS = re.compile(r"(?<![\w])[\"'`“‘«„](?=\S)")
_NAMED = re.compile(
    r"\b[A-Z][\w&.'-]{0,30}(?:(?: (?:of|the|and|de|la|&) | )[A-Z0-9][\w&'-]{0,30}){1,7}"
)
_STARTS = re.compile(
    r"(?:I|I'm|I'd|I've|The|A|An|In|On|At|If|It|Is|Can|Could|Would|Please|We|My|Also|And|Then|For"
    r"|When|What|How|Who|Do|Does|Are|This|That|Let|Now|Next|After|Before|With|From|To|Move|Delete"
    r"|Send|Find|Add|Create|Change|Update|Cancel|Check|Get|Show|Make|Book|Set|Give|Tell|Assign) "
)
_CUED = re.compile(
    r"\b(?:called|named|titled|labell?ed|entitled|saying|says|about|subject|regarding|to|as|with|for"
    r"|from|is|of|by|in|at|on|the|all|my|any)[:,]? +(?=\S)"
)
_CUE_ENDS = re.compile(
    r"[.?!;:,\n\"“”]|\s(?:and|or|to|for|with|on|at|by|from|in|as|that|which|if|but|then|when|so|is"
    r"|has|have|was|were|are|called|named|titled|saying|about|assigned|due|who)\b"
)
_OWNER = re.compile(r"(?<![\w'-])([A-Z]\w{1,30} [A-Z]\w{1,30}|\w{2,40})['’]s\b")
_CONTRACTED = frozenset(("it", "that", "there", "what", "let", "who", "he", "she", "here", "how"))
_NUMBER = re.compile(r"(?<![\w.#-])[$€£]?(-?\d[\d,]{0,14}(?:\.\d{1,6})?)(k\b)?(?![\w-])")
_WORDED = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|half)\b"
)
_TYPES = (
    ("email", "@", re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,20}){1,4}")),
    ("url", "http", re.compile(r"\bhttps?://[^\s\"'<>)]{1,400}")),
    ("file", ".", re.compile(r"(?<![\w./@-])[\w./-]{0,80}\w\.[A-Za-z][A-Za-z0-9]{1,4}\b(?!\.\w)")),
    (
        "code",
        "",
        re.compile(r"(?<![\w#@-])(?=[\w-]{0,40}[A-Za-z])(?=[\w-]{0,40}[\d_])[\w-]{3,60}\b"),
    ),
    ("capitals", "", re.compile(r"\b[A-Z]{2,6}\b")),
    ("tag", "#", re.compile(r"(?<!\w)#[A-Za-z]\w{1,50}")),
    ("at", "@", re.compile(r"(?<!\w)@[A-Za-z]\w{1,50}")),
)
"""Kinds of tokens, with what stands in each: most texts lack it, which is seen at once."""


class Mention(NamedTuple):
    """A value, the kind of mention it is, where it stands in the text."""

    kind: str
    value: str | int | float
    at: int


def mentions(text: str) -> Iterator[Mention]:
    """All mentions of a text's first 20,000 characters; of each kind a bounded number."""
    text = text[:_MAX_CHARS]
    yield from quotations(text)
    yield from names(text)
    yield from cued(text)
    yield from owners(text)
    yield from numbers(text)
    for kind, literal, pattern in _TYPES:
        if literal not in text:
            continue
        for count, match in enumerate(pattern.finditer(text)):
            if count >= _MAX_TYPED:
                break
            yield Mention(kind, match.group(), match.start())


def quotations(text: str) -> Iterator[Mention]:
    """What stands in quotation marks: the mark that closes stands after no space and before no
    letter, so that an apostrophe within does not."""
    found, at = 0, 0
    for _ in range(_MAX_OPENED):
        match = _OPENS.search(text, at)
        if match is None:
            return
        start = match.end()
        end = _closing(text, start, _OPEN[match.group()])
        if end is None:
            at = start
            continue
        found += 1
        if found > _MAX_FOUND:
            return
        yield Mention("quoted", text[start:end].strip(), start)
        at = end + 1


def _closing(text: str, start: int, mark: str) -> int | None:
    end = text.find(mark, start, start + _LONGEST_QUOTED)
    for _ in range(_MAX_CLOSED):
        if end < 0:
            return None
        if end > start and not text[end - 1].isspace() and not text[end + 1 : end + 2].isalnum():
            return end
        end = text.find(mark, end + 1, start + _LONGEST_QUOTED)
    return None


def names(text: str) -> Iterator[Mention]:
    """Runs of words with capitals, without the first word of a sentence that only begins it."""
    for count, match in enumerate(_NAMED.finditer(text)):
        if count >= _MAX_FOUND:
            return
        value, at = match.group(), match.start()
        begins = _STARTS.match(value)
        if begins:
            value, at = value[begins.end() :], at + begins.end()
        value = value.removesuffix("'s").rstrip(".'")
        if 2 < len(value) <= _LONGEST_NAMED:
            yield Mention("name", value, at)


def cued(text: str) -> Iterator[Mention]:
    """What follows "called", "about", "to" up to the end of the clause."""
    for count, match in enumerate(_CUED.finditer(text)):
        if count >= 2 * _MAX_FOUND:
            return
        start = match.end()
        ends = _CUE_ENDS.search(text, start, start + _LONGEST_CUED)
        if ends is None and len(text) - start > _LONGEST_CUED:
            continue
        value = text[start : ends.start() if ends else len(text)].strip(" '’`")
        if " " in value and len(value) > 3:
            yield Mention("cued", value, start)


def owners(text: str) -> Iterator[Mention]:
    """Whose something is: "Ada Byron's", "bo's"."""
    for count, match in enumerate(_OWNER.finditer(text)):
        if count >= _MAX_FOUND:
            return
        if match[1].lower() not in _CONTRACTED:
            yield Mention("owner", match[1], match.start())


def numbers(text: str) -> Iterator[Mention]:
    """Numbers without currency and separators, those of words too."""
    for count, match in enumerate(_NUMBER.finditer(text)):
        if count >= _MAX_TYPED:
            break
        plain = match[1].replace(",", "").rstrip(".")
        value: int | float = float(plain) if "." in plain else int(plain)
        if match[2]:
            value *= 1000
        yield Mention("number", int(value) if value == int(value) else value, match.start())
    for match in _WORDED.finditer(text.lower()):
        number = number_of(match[1])
        if number is not None:
            yield Mention("worded", int(number) if number == int(number) else number, match.start())
