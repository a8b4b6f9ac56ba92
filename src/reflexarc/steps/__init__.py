"""The vocabulary: messages, tools, calls, sessions, items, errors. Imports nothing of ours."""

from reflexarc.steps.canonical import call_key as call_key
from reflexarc.steps.canonical import canonical_json as canonical_json
from reflexarc.steps.canonical import nests_deeper as nests_deeper
from reflexarc.steps.items import Item as Item
from reflexarc.steps.items import decision_items as decision_items
from reflexarc.steps.model import Effect as Effect
from reflexarc.steps.model import Message as Message
from reflexarc.steps.model import Session as Session
from reflexarc.steps.model import ToolCall as ToolCall
from reflexarc.steps.model import ToolSpec as ToolSpec
