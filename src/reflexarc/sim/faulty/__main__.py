"""`python -m reflexarc.sim.faulty [PORT]`: the fault upstream in the foreground."""

import argparse
import asyncio
import contextlib

from reflexarc.sim.faulty import FaultyUpstream

DEFAULT_PORT = 8422


async def serve(port: int) -> None:
    upstream = FaultyUpstream()
    await upstream.start(port=port)
    print(f"fault upstream: {upstream.url} (Gemini: {upstream.gemini_url})", flush=True)
    await upstream.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m reflexarc.sim.faulty",
        description="Serve a System 2 of four dialects that misbehaves as it is told: "
        "docs/simulator.md. Ctrl-C stops it.",
    )
    parser.add_argument(
        "port", nargs="?", type=int, default=DEFAULT_PORT, help="0 takes a free one"
    )
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(arguments.port))


if __name__ == "__main__":
    main()
