"""A small agent for tests of partial decisions: a claims desk that writes free text.

One task is one claim. The agent reads the claim, searches the handbook in words of its own (a read
with free text: `question`), then writes a note in words of its own (a write), and answers.
"""

import random

from reflexarc.steps import Message, Session, ToolCall, ToolSpec
from tests.reflex.parcels import Conversation

PROMPT = "You are the claims desk."
WORDS = [
    "water",
    "glass",
    "roof",
    "fence",
    "storm",
    "engine",
    "brake",
    "pipe",
    "window",
    "cellar",
    "garden",
    "ladder",
    "bicycle",
    "oven",
    "carpet",
    "mirror",
    "tyre",
    "boiler",
    "chimney",
    "gutter",
]


def _tool(name: str, description: str, *arguments: str) -> ToolSpec:
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(arguments),
        "additionalProperties": False,
    }
    effect = "write" if name == "create_note" else "read"
    return ToolSpec(name, description, schema, effect=effect)


TOOLS = (
    _tool("get_claim", "Read a claim.", "claim_id"),
    _tool("search_handbook", "Search the handbook.", "policy_id", "question"),
    _tool("create_note", "Write a note on a claim.", "claim_id", "text"),
)


def session(task: int, wrong_policy: float = 0.0) -> Session:
    """One claim; with probability `wrong_policy` the agent searches under another policy."""
    facts = random.Random(task)
    claim, policy = f"CL-{facts.randrange(10**5, 10**6)}", f"PO-{facts.randrange(10**5, 10**6)}"
    other = f"PO-{facts.randrange(10**5, 10**6)}"
    talk = Conversation()
    talk.messages = [Message("system", PROMPT)]
    talk.user(f"What about my claim {claim}?")
    talk.calls("get_claim", {"claim_id": claim, "policy_id": policy}, claim_id=claim)
    asked = other if facts.random() < wrong_policy else policy
    question = "Is damage to a " + " or a ".join(facts.sample(WORDS, 4)) + " covered"
    talk.calls("search_handbook", "Yes.", policy_id=asked, question=question)
    note = "Told them that a " + " and a ".join(facts.sample(WORDS, 4)) + " is covered"
    talk.calls("create_note", {"ok": True}, claim_id=claim, text=note)
    talk.says("It is covered.")
    return Session(f"memos-{task}", f"memos-{task}", TOOLS, tuple(talk.messages), "memo-model")


def sessions(first: int, last: int, wrong_policy: float = 0.0) -> list[Session]:
    return [session(task, wrong_policy) for task in range(first, last)]


def before(task: int, tool: str) -> tuple[list[Message], ToolCall]:
    """A claim as it stands before the call of a tool, and that call."""
    messages = session(task).messages
    at = next(i for i, m in enumerate(messages) if any(c.name == tool for c in m.tool_calls))
    return list(messages[:at]), messages[at].tool_calls[0]
