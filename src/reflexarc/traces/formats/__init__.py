"""The formats of logs that can be read, each a module; the first to recognise a file reads it."""

from reflexarc.traces.formats.agents_sdk import AgentsSdk
from reflexarc.traces.formats.aiperf import Aiperf
from reflexarc.traces.formats.claude_code import ClaudeCode
from reflexarc.traces.formats.codex import Codex
from reflexarc.traces.formats.copilot_cli import CopilotCli
from reflexarc.traces.formats.gateway_rows import Helicone, Portkey
from reflexarc.traces.formats.gemini_cli import GeminiCli
from reflexarc.traces.formats.goose import Goose
from reflexarc.traces.formats.inspect_ai import InspectAi
from reflexarc.traces.formats.langfuse import Langfuse
from reflexarc.traces.formats.langsmith import LangSmith
from reflexarc.traces.formats.litellm import LiteLlm
from reflexarc.traces.formats.mini_swe_agent import MiniSweAgent
from reflexarc.traces.formats.mooncake import Mooncake
from reflexarc.traces.formats.opencode import OpenCode
from reflexarc.traces.formats.openhands import OpenHands
from reflexarc.traces.formats.otlp import Otlp
from reflexarc.traces.formats.pi import Pi
from reflexarc.traces.formats.pydantic_ai import PydanticAi
from reflexarc.traces.formats.request_log import RequestLog
from reflexarc.traces.formats.session_lines import SessionLines
from reflexarc.traces.formats.swe_agent import SweAgent
from reflexarc.traces.formats.weka import Weka
from reflexarc.traces.logs import Format

FORMATS: tuple[Format, ...] = (
    # harnesses: transcripts of command-line agents
    ClaudeCode(),
    Codex(),
    GeminiCli(),
    OpenCode(),
    Goose(),
    Pi(),
    CopilotCli(),
    # exports: gateways, tracing, request logs
    Otlp(),
    Langfuse(),
    LangSmith(),
    LiteLlm(),
    AgentsSdk(),
    Helicone(),
    Portkey(),
    Mooncake(),
    Aiperf(),
    # runs: trajectories, evaluations, block traces, sessions
    InspectAi(),
    SweAgent(),
    MiniSweAgent(),
    OpenHands(),
    PydanticAi(),
    Weka(),
    SessionLines(),
    # last: it takes whatever holds a request or an answer
    RequestLog(),
)
