"""For LiteLLM's proxy: an error of System 2 keeps its `retry-after` and `x-should-retry`.

LiteLLM hands these on as `llm_provider-retry-after` and so on, which no SDK looks for. Put this
file beside the configuration, which names it under `callbacks`.
"""
# pyright: basic, reportMissingImports=false
# LiteLLM has an environment of its own; here it is not installed.

from litellm.integrations.custom_logger import CustomLogger
from litellm.litellm_core_utils.llm_response_utils.get_headers import get_response_headers

KEPT = ("retry-after", "retry-after-ms", "x-should-retry")


class RetryAfter(CustomLogger):
    """Adds to an error's headers; changes nothing else of it."""

    async def async_post_call_failure_hook(
        self, request_data, original_exception, user_api_key_dict, traceback_str=None
    ):
        del request_data, user_api_key_dict, traceback_str
        response = getattr(original_exception, "response", None)
        given = getattr(response, "headers", None) or getattr(
            original_exception, "litellm_response_headers", None
        )
        if given is None or getattr(original_exception, "headers", None):
            return
        given = {name.lower(): value for name, value in dict(given).items()}
        kept = {name: given[name] for name in KEPT if name in given}
        original_exception.headers = {**get_response_headers(given), **kept}


retry_after = RetryAfter()
