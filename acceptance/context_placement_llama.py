"""llama.cpp's own server with the embedded engine's model and two slots, bare: `python -m ... MIB`
says its address. MIB bounds its own memory of prompts, 0: none. It ends at the end of standard
input.
"""

import importlib
import os
import sys
from typing import Any

from reflexarc.upstream.embedded.installed import model_path
from reflexarc.upstream.embedded.process import threads

KEY = "theirs"
SLOTS, CONTEXT_TOKENS = 2, 4096
NICENESS = 10


def main() -> None:
    os.nice(NICENESS)
    # An extra without types: this is only started where it is installed.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [KEY]
    params.n_ctx = SLOTS * CONTEXT_TOKENS
    params.n_parallel = SLOTS
    params.cache_ram_mib = int(sys.argv[1])
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads()
    params.n_threads_http = 4
    params.warmup = False
    params.verbosity = -1
    server: Any = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while sys.stdin.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
