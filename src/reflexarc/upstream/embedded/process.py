"""The engine's process: `python -m reflexarc.upstream.embedded.process FD SETUP`, started by
`Embedded`.

FD is a listening socket, SETUP a `Setup` in JSON; `ready` on standard output says that it is
served. A llama.cpp server runs inside, on a port of its own behind a key that only this process
knows. It ends with its gateway: at the end of standard input, once it has saved what its slots
hold.
"""

import asyncio
import hashlib
import importlib
import importlib.metadata
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from reflexarc.steps.errors import ConfigError
from reflexarc.store.place import secret
from reflexarc.upstream.embedded.app import application
from reflexarc.upstream.embedded.engine import Engine, slots_needed
from reflexarc.upstream.embedded.installed import model_path
from reflexarc.upstream.embedded.keeping import Keeping
from reflexarc.upstream.embedded.llama import Llama
from reflexarc.upstream.embedded.options import EngineOptions, Setup
from reflexarc.upstream.embedded.pins import Pins
from reflexarc.upstream.embedded.saved import Fit, Saved

NICENESS = 10
STOP_S = 5.0
"""For what is left to do at the end: answers broken off, states saved."""

_log = logging.getLogger("reflexarc.embedded")


def threads() -> int:
    """One core is left to the gateway, where there is another."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, cores - 1)


def main() -> None:
    """Runs until its supervisor is gone."""
    # An interrupt from the terminal reaches the whole group; the gateway decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    # What is saved is written by llama.cpp, for its owner alone.
    os.umask(0o077)
    setup = msgspec.json.decode(sys.argv[2], type=Setup) if len(sys.argv) > 2 else Setup()
    ending = _Ending()
    threading.Thread(target=ending.watch, daemon=True).start()
    saved, key = _saved(setup)
    api_key = secrets.token_hex(16)
    server = _llama_server(api_key, setup.options, saved)
    listener = socket.socket(fileno=int(sys.argv[1]))
    asyncio.run(_serve(server.listening_address, api_key, setup, saved, key, listener, ending))
    # No destructor of llama.cpp is waited for.
    os._exit(0)


class _Ending:
    """The end of standard input, told to the loop; past `STOP_S` nothing is waited for."""

    def __init__(self) -> None:
        self._came = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = asyncio.Event()

    def watch(self) -> None:
        """For a thread."""
        while os.read(0, 4096):
            pass
        self._came = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told.set)
        time.sleep(STOP_S)
        os._exit(0)

    async def wait(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not self._came:
            await self._told.wait()


def _saved(setup: Setup) -> tuple[Saved | None, bytes]:
    """Where states are saved, and the key of their names; one for this process alone where none
    can be."""
    options = setup.options
    if setup.directory is not None and options.saved_mib:
        fit = Fit(_digest(model_path()), _engine(), options.kv_type)
        max_bytes, keep_s = options.saved_mib * 2**20, options.saved_hours * 3600
        try:
            saved = Saved(Path(setup.directory), fit, max_bytes, keep_s, time.time)
            return saved, secret(saved.directory)
        except ConfigError as error:
            _log.error("the embedded engine saves nothing: %s", error)
    return None, secrets.token_bytes(32)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _engine() -> str:
    return f"xllamacpp {importlib.metadata.version('xllamacpp')}"


def _llama_server(key: str, options: EngineOptions, saved: Saved | None) -> Any:
    # An extra without types: this process is only started where it is installed.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    # One pool of cells: slots in which tools are chosen need few. Each slot has its bound.
    params.n_ctx = options.cells
    params.n_parallel = slots_needed(options.slots)
    params.kv_unified = True
    params.kv_unified_per_slot = options.context_tokens
    params.cache_ram_mib = 0
    if options.kv_type == "q8_0":
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_Q8_0
    if options.ngram:
        # Of the kinds there are, the one that looks at nothing but the slot's own tokens.
        kinds = xllamacpp.common_speculative_type
        params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    # Without any, llama.cpp erases no slot either; beneath a file nothing can be written.
    params.slot_save_path = f"{os.devnull if saved is None else saved.directory}{os.sep}"
    params.cpuparams.n_threads = options.threads or threads()
    params.cpuparams_batch.n_threads = options.threads or threads()
    params.n_threads_http = 4 + slots_needed(options.slots)
    params.warmup = False
    params.verbosity = -1
    return xllamacpp.Server(params)


async def _serve(
    base: str,
    api_key: str,
    setup: Setup,
    saved: Saved | None,
    key: bytes,
    listener: socket.socket,
    ending: _Ending,
) -> None:
    # A kept connection is sometimes dropped by llama.cpp just as it is used again: each request
    # opens one, on this machine.
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        llama = Llama(base, api_key, session)
        pins = Pins(setup.options.slots, time.monotonic)
        keeping = Keeping(llama, pins, saved, setup.options, time.monotonic)
        app = application(Engine(llama, pins, keeping, key, time.monotonic))
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await runner.setup()
        await web.SockSite(runner, listener).start()
        os.write(1, b"ready\n")
        looking = asyncio.ensure_future(keeping.look())
        ended = asyncio.ensure_future(ending.wait())
        await asyncio.wait({looking, ended}, return_when=asyncio.FIRST_COMPLETED)
        if looking.done():  # it never returns: it failed, and so does this process
            looking.result()
        looking.cancel()
        await asyncio.wait({looking})
        await runner.cleanup()
        await keeping.save_all()


if __name__ == "__main__":
    main()
