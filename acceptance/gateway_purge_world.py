"""Whom the purge is measured on: two tenants, all that is planted in what they say, a System 2."""

import base64
import json
import random
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TASKS = 60
"""Of each tenant."""
LONGEST_HELD_S = 120.0
_SECOND = {"A": "get_order", "B": "get_parcel"}


class Person:
    """Everything of one tenant: what its conversations plant, and what they are."""

    def __init__(self, draw: random.Random, tenant: str) -> None:
        self.tenant = tenant
        self.key = f"sk-{tenant}-{_letters(draw, 24)}"
        self.depot = f"{_letters(draw, 4).upper()} {_letters(draw, 6)} depot"
        """What an argument takes in every task: a constant of what is learned."""
        self.planted: set[str] = {self.depot}
        self.sessions = [self._session(draw, number) for number in range(TASKS)]

    def _session(self, draw: random.Random, number: int) -> dict[str, Any]:
        name = f"{_letters(draw, 7).title()} {draw.choice('ŁÖÉÑŻ')}{_letters(draw, 8)}"
        values = {
            "name": name,
            "email": f"{_letters(draw, 9)}.{draw.randrange(100)}@{_letters(draw, 7)}.example",
            "order": f"W{draw.randrange(10**8, 10**9)}",
            "number": draw.randrange(10**10, 10**12),
            "quoted": f'say "{_letters(draw, 9)}"\\{_letters(draw, 5)}\n\t{_letters(draw, 7)}',
            "emoji": f"{_letters(draw, 6)} \U0001f984 {''.join(draw.choices('дзѳщ漢字', k=8))}",
            "base64": base64.b64encode(draw.randbytes(33)).decode(),
            "key": f"{_letters(draw, 5)}-{draw.randrange(10**6)}",
            "system": f"desk {_letters(draw, 11)}",
            "answer": f"Sent to {_letters(draw, 12)}.",
            "session": f"sess-{_letters(draw, 14)}",
            "task": f"task {_letters(draw, 14)}",
            "result": f"{_letters(draw, 10)} road {draw.randrange(1000, 9999)}",
        }
        self.planted |= {str(value) for value in values.values()}
        found = {
            "customer": values["name"],
            "order_id": values["order"],
            "balance": values["number"],
            "notes": {values["key"]: values["quoted"]},
            "picture": values["base64"],
            "address": values["result"],
        }
        order = {"order_id": values["order"], "parcel": values["emoji"], "state": "packed"}
        turns = [
            {"role": "system", "content": f"You help with orders of {values['system']}."},
            {
                "role": "user",
                "content": f"I am {values['name']} ({values['quoted']}, {values['emoji']}): "
                f"where is the order of {values['email']}?",
            },
            _calls(number, 0, "find_customer", {"email": values["email"]}),
            {"role": "tool", "tool_call_id": f"call_{number}_0", "content": json.dumps(found)},
            _calls(
                number,
                1,
                _SECOND[self.tenant],
                {"order_id": values["order"], "depot": self.depot},
            ),
            {
                "role": "tool",
                "tool_call_id": f"call_{number}_1",
                "content": json.dumps(order, ensure_ascii=False),
            },
            {"role": "assistant", "content": values["answer"]},
        ]
        planted = sorted({str(value) for value in values.values()})
        return {
            "session": values["session"], "task": values["task"], "turns": turns,
            "planted": planted,
        }  # fmt: skip


def _letters(draw: random.Random, count: int) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=count))


def _calls(number: int, place: int, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}_{place}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _tool(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Reads: {name}.",
            "parameters": {
                "type": "object",
                "properties": {one: {"type": "string"} for one in arguments},
                "required": list(arguments),
            },
            "x-reflexarc-effect": "read",
        },
    }


TOOLS = {
    tenant: [_tool("find_customer", ["email"]), _tool(second, ["order_id", "depot"])]
    for tenant, second in _SECOND.items()
}


@contextmanager
def upstream() -> Generator[tuple[str, dict[str, Any], threading.Event]]:
    """A server that answers each request with the turn that is filed under its `x-turn`; one with
    `x-hold` once the event is set."""
    filed: dict[str, Any] = {}
    go_on = threading.Event()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("x-hold"):
                go_on.wait(LONGEST_HELD_S)
            choice = {
                "index": 0, "message": filed[self.headers["x-turn"]], "finish_reason": "stop"
            }  # fmt: skip
            body = json.dumps({"object": "chat.completion", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", filed, go_on
    finally:
        go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
