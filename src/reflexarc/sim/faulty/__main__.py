"""`python -m reflexarc.sim.faulty [PORT]`: the fault upstream in the foreground."""

import asyncio
import contextlib
import sys

from reflexarc.sim.faulty import FaultyUpstream


async def serve(port: int) -> None:
    upstream = FaultyUpstream()
    await upstream.start(port=port)
    print(f"fault upstream: {upstream.url} (Gemini: {upstream.gemini_url})", flush=True)
    await upstream.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8422))
