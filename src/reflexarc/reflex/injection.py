"""Signs of instructions to a model in a tool's result: lexical, in several languages, no model.

A sign is weak evidence by itself; a result is taken for injected only where learned results do not
commonly show the same sign (`familiarity.py`).
"""

import re

_HIDDEN = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
_HIDDEN_AT_START = "\ufeff"
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_BLOB = re.compile(r"[A-Za-z0-9+/]{80,}={0,2}")

# What may be set aside, and the verbs that set it aside, in the languages of most agents' users.
_ORDERS = (
    r"instructions?|prompts?|rules?|guidelines?|polic(?:y|ies)|directions?|commands?|context"
    r"|anweisung(?:en)?|regeln|vorgaben|consignes?|règles|directives?|instrucciones|reglas"
    r"|istruzioni|regole|instruções|regras|instructies|инструкци[ийюя]\w*|правила"
)
_IGNORE = (
    r"ignore|disregard|forget|override|bypass|discard|do not follow|don't follow|stop following"
    r"|ignorier(?:e|en|t)|vergiss|vergessen|missachte|ignor(?:ez|er|a|ar|e|are)|oublie[zr]?"
    r"|olvida|omite|dimentica|esqueça|negeer|vergeet|игнорируй\w*|забудь\w*"
)
# Each sign: an anchor that must stand in the lower-cased text (cheap), then the pattern (dear).
_SIGNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (name, anchors, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for name, anchors, pattern in (
        (
            "set aside",
            ("gnor", "disregard", "forget", "overrid", "bypass", "discard", "follow", "verg",
             "missacht", "oubli", "olvid", "omit", "dimentic", "esque", "negeer", "игнор", "забуд"),
            rf"\b(?:{_IGNORE})\b.{{0,60}}\b(?:{_ORDERS})\b",
        ),
        (
            "set aside",
            ("忽略", "无视", "無視", "忘记", "以前の指示", "무시", "تجاهل"),
            r"(?:忽略|无视|忘记).{0,12}(?:指令|指示|提示|规则|内容|命令)|指示.{0,6}無視|무시|تجاهل",
        ),
        (
            "role",
            ("im_start", "im_end", "inst", "system", "assistant", "developer", "human", "user:"),
            r"<\|?(?:im_start|im_end|system|assistant|user|developer|endoftext)\|?>|\[/?INST\]"
            r"|<</?SYS>>|</?(?:system|assistant|developer|instructions?)[^<>]{0,40}>"
            r"|^\W{0,4}(?:system|assistant|developer|human)\s{0,2}(?:message|prompt|note|update"
            r"|override|instruction|notice)?\s{0,2}[\])]?:"
            r"|\bsystem (?:prompt|message|override|instruction|notice|note|update)\b",
        ),
        (
            "to the model",
            ("assistant", "model", "agent", "llm", " ai", "chatbot", "bot ", "asistente",
             "assistent", "ki-", "助手", "modell", "intelligence"),
            r"\b(?:to|attention|dear|hey|note for|notice to|message for|instructions? (?:to|for)"
            r"|an|für|pour|para)\s+(?:the\s+|all\s+|any\s+|l'|el\s+|den\s+|die\s+)?(?:ai|llm"
            r"|(?:language )?model|(?:ai )?assistants?|(?:ai )?agents?|chatbot|bot|asistente"
            r"|assistenten|ki)\b"
            r"|\b(?:ai|assistant|agent|model|llm|bot)s?\s*(?:,|:|must|should|shall|has to"
            r"|is required|needs to|will now|please)\b"
            r"|\b(?:as|you are)\s+(?:an?\s+)?(?:ai|language model|helpful assistant)\b"
            r"|助手[，,：:必请]",
        ),
        (
            "new task",
            ("you are now", "your new", "new instruct", "from now on", "you must", "you should now",
             "you have to", "instead", "act as", "pretend", "before answering", "before continuing",
             "before you", "ab jetzt", "désormais", "a partir de ahora", "du musst", "sie müssen",
             "vous devez", "debes", "tu dois", "ты должен", "你必须", "你现在", "从现在"),
            r"\byou are now\b|\byour new (?:task|role|goal|instructions?|job)\b"
            r"|\bnew (?:instructions?|task|orders?)\s*:"
            r"|\bfrom now on\b|\byou (?:must|have to|should) (?:now|immediately|first|also|instead"
            r"|always|never|not|call|use|send|run|execute|issue|refund|transfer|approve|grant|cancel"
            r"|delete|return|say|tell|reply|respond|answer|ignore)\b"
            r"|\binstead,? (?:call|use|send|run|execute|reply|say|tell|do|you)\b"
            r"|\b(?:act as|pretend (?:to|that))\b"
            r"|\bbefore (?:answering|continuing|you (?:answer|continue|reply|respond|proceed))\b"
            r"|\bab jetzt\b|\bdésormais\b|\ba partir de ahora\b|\b(?:du musst|sie müssen|vous devez"
            r"|debes|tu dois|ты должен)\b|你必须|你现在|从现在",
        ),
        (
            "names a call",
            ("call ", "use ", "run ", "invoke ", "execute ", "trigger ", "aufrufen ", "rufe ",
             "appele", "llama ", "tool call", "tool_call", "function call", "function_call"),
            r"\b(?:call|use|run|invoke|execute|trigger|aufrufen|rufe|appele[rz]?|llama)\s+(?:(?:the|a"
            r"|die|la|le|el)\s+)?(?:(?:function|tool|funktion|fonction|función)\s+)?"
            r"[`'\"]?[a-z]+_[a-z_]+|\b(?:call|use|run|invoke|execute) (?:the|this|a) "
            r"(?:following )?(?:function|tool)\b|\b(?:tool|function)[ _]call\b",
        ),
        (
            "secrecy",
            ("do not tell", "don't tell", "do not mention", "don't mention", "without telling",
             "do not inform", "do not reveal", "nicht erwähnen", "sag dem", "ne dis", "no digas",
             "without asking", "no confirmation", "do not ask", "don't ask", "不要告诉"),
            r"\b(?:do not|don't|never) (?:tell|mention|inform|reveal|ask|notify|show)\b"
            r"|\bwithout (?:telling|asking|informing|confirmation)\b|\bno confirmation\b"
            r"|\bnicht erwähnen\b|\bsag dem\b|\bne dis\b|\bno digas\b|不要告诉",
        ),
        (
            "send away",
            ("send ", "post ", "upload ", "forward ", "submit ", "exfiltrate ", "transmit ",
             "curl ", "fetch ", "visit ", "navigate ", "open ", "click ", "mail ", "email ",
             "copy ", "report ", "sende ", "envoie", "envía "),
            r"\b(?:send|post|upload|forward|submit|exfiltrate|transmit|curl|fetch|visit|navigate"
            r"|open|click|mail|email|copy|report|sende|envoie[rz]?|envía)\b[^\n\"]{0,80}?"
            r"(?:https?://|[\w.+-]++@[\w-]++\.)",
        ),
        (
            "image link",
            ("](http",),
            r"!?\[[^\]\n]{0,80}\]\(https?://[^)\s]{1,400}[?&=]",
        ),
        (
            "urgency",
            ("important", "urgent", "attention", "wichtig", "immediately", "critical", "mandatory",
             "必须", "重要"),
            r"(?:^|[\[<*#!(\"]|\.\s)\W{0,4}(?:very important|important|urgent|attention|wichtig"
            r"|critical|mandatory)\b\W{0,4}(?::|!|\]|>|\*|-|instruction|message|notice)"
            r"|\bimmediately (?:call|send|transfer|refund|issue|cancel|delete|approve|grant)\b",
        ),
    )
)  # fmt: skip


Anchors = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""Pieces of text, and the anchors that hold each with the places of their signs."""


def _by_shared_piece(anchors: list[tuple[str, int]]) -> Anchors:
    """Anchors grouped by a piece they share: of a text without the piece, nothing else is asked.
    Most texts show no sign at all, and are then asked for half as many."""
    grouped: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    left = sorted(set(anchors))
    while left:
        pieces: dict[str, int] = {}
        for anchor, _ in left:
            for piece in {
                anchor[start:end]
                for start in range(len(anchor))
                for end in range(start + 3, len(anchor) + 1)
            } or {anchor}:
                pieces[piece] = pieces.get(piece, 0) + 1
        best = max(pieces, key=lambda piece: (pieces[piece], len(piece), piece))
        grouped.append((best, tuple(pair for pair in left if best in pair[0])))
        left = [pair for pair in left if best not in pair[0]]
    return tuple(grouped)


_ANCHORS = [(anchor, at) for at, (_, found, _) in enumerate(_SIGNS) for anchor in found]
# The same patterns for texts in small letters: a search that folds case takes half as long again.
_OF_LOWER = [
    re.compile(pattern.pattern.replace("INST", "inst").replace("SYS", "sys"), re.MULTILINE)
    for _, _, pattern in _SIGNS
]
_PLAIN = _by_shared_piece([pair for pair in _ANCHORS if pair[0].isascii()])
_FOREIGN = _by_shared_piece([pair for pair in _ANCHORS if not pair[0].isascii()])


def _anchored(lower: str) -> set[int]:
    """The places of the signs with an anchor in a lower-cased text."""
    found: set[int] = set()
    for piece, anchors in _PLAIN if lower.isascii() else (*_PLAIN, *_FOREIGN):
        if piece in lower:
            found.update([at for anchor, at in anchors if at not in found and anchor in lower])
    return found


def signs(text: str) -> frozenset[str]:
    """The names of the signs a result shows. Time in proportion to the text."""
    if "\\" in text:
        if "\\u" in text:
            text = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
        text = text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", " ")
    found: set[str] = set()
    if not text.isascii() and _HIDDEN.search(text.removeprefix(_HIDDEN_AT_START)):
        found.add("hidden characters")
        text = _HIDDEN.sub("", text)
    lower = text.lower()
    plain = text.isascii()
    for at in sorted(_anchored(lower)):
        name, _, pattern = _SIGNS[at]
        if name not in found and (_OF_LOWER[at].search(lower) if plain else pattern.search(text)):
            found.add(name)
    if len(text) >= 80 and _BLOB.search(text):
        found.add("blob")
    return frozenset(found)
