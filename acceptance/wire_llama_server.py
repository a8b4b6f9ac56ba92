"""llama.cpp's own server with the embedded engine's model, bare: `python -m ...` says its address.

Nothing of the embedded engine stands before it: it speaks chat, responses and messages itself. It
ends at the end of standard input.
"""

import importlib
import os
import sys
from typing import Any

from acceptance.wire_upstream import KEY
from reflexarc.upstream.embedded.installed import model_path

CONTEXT_TOKENS = 4096
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
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
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
