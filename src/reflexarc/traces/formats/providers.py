"""Whose model a request asked, in the words of the price list, from whatever a log tells of it."""

from reflexarc.traces import models
from reflexarc.traces.formats.asked import dialect_of
from reflexarc.traces.loose import Table

_NAMES = {
    "openai.chat": "openai",
    "openai.responses": "openai",
    "anthropic.messages": "anthropic",
    "gcp.gemini": "gemini",
    "gcp.gen_ai": "gemini",
    "google_genai": "gemini",
    "google_generative_ai": "gemini",
    "google-generative-ai": "gemini",
    "google.generative-ai": "gemini",
}
_OWN_FORM = {"messages": "anthropic", "responses": "openai", "gemini": "gemini"}
_OPENAIS = ("gpt-", "chatgpt-", "o1", "o3", "o4")


def maker(name: str) -> str:
    """A provider by a tracer's name for it; "" for one without prices of its own (the same model
    costs another sum at a cloud's)."""
    name = name.strip().lower()
    return _NAMES.get(name, "") or models.provider(name)


def spoken_by(model: str, request: Table, response: Table) -> str:
    """By the form of the bodies, where nothing names a provider."""
    form = dialect_of(request)
    if response.get("type") == "message":
        form = "messages"
    elif response.get("object") == "response":
        form = "responses"
    elif "candidates" in response:
        form = "gemini"
    if form in _OWN_FORM:
        return _OWN_FORM[form]
    # half the world speaks the chat form
    return "openai" if model.startswith(_OPENAIS) else ""
