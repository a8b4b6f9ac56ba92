"""The engine's process: `python -m reflexarc.upstream.embedded.process FD`, started by `Embedded`.

FD is a listening socket; `ready` on standard output says that it is served. A llama.cpp server runs
inside, on a port of its own behind a key that only this process knows. It ends with its gateway: at
the end of standard input.
"""

import asyncio
import importlib
import os
import secrets
import signal
import socket
import sys
import threading
import time
from typing import Any

import aiohttp
from aiohttp import web

from reflexarc.upstream.embedded.app import application
from reflexarc.upstream.embedded.engine import SLOTS, Engine
from reflexarc.upstream.embedded.installed import model_path
from reflexarc.upstream.embedded.llama import Llama

CONTEXT_TOKENS = 8192
"""As many as the model was trained for. Each takes 23 kB once it is used."""

NICENESS = 10


def threads() -> int:
    """One core is left to the gateway, where there is another."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, cores - 1)


def main() -> None:
    """Runs until its supervisor is gone."""
    # An interrupt from the terminal reaches the whole group; the gateway decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_gateway, daemon=True).start()
    os.nice(NICENESS)
    key = secrets.token_hex(16)
    server = _llama_server(key)
    listener = socket.socket(fileno=int(sys.argv[1]))
    asyncio.run(_serve(server.listening_address, key, listener))


def _end_with_gateway() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _llama_server(key: str) -> Any:
    # An extra without types: this process is only started where it is installed.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = SLOTS
    params.kv_unified = True
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = threads()
    params.cpuparams_batch.n_threads = threads()
    params.n_threads_http = 4
    params.warmup = False
    params.verbosity = -1
    return xllamacpp.Server(params)


async def _serve(base: str, key: str, listener: socket.socket) -> None:
    # A kept connection is sometimes dropped by llama.cpp just as it is used again: each request
    # opens one, on this machine.
    connector = aiohttp.TCPConnector(force_close=True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        app = application(Engine(Llama(base, key, session), time.monotonic))
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        os.write(1, b"ready\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
