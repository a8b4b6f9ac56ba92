"""How bytes go out: as events, and over the wire, whole or broken on purpose."""

import asyncio
import json
import random
import socket
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from reflexarc.sim.faulty.script import Frame, Words

_COMMENT = ": keep-alive"
_LINGER_NOT = struct.pack("ii", 1, 0)
"""Closes a connection with a reset."""


def events(frames: list[Frame], words: Words) -> list[bytes]:
    """Each frame as the bytes of an event."""
    end = "\r\n" if "crlf" in words else "\r" if "cr" in words else "\n"
    data = "data:" if "nospace" in words else "data: "
    out: list[bytes] = []
    for frame in frames:
        lines: list[str] = []
        if "comments" in words:
            lines += [_COMMENT, ""]
        if frame.name and "nonames" not in words:
            lines.append(f"event: {frame.name}")
        lines += [f"{data}{line}" for line in _lines(frame.data, words)]
        out.append("".join(f"{line}{end}" for line in (*lines, "")).encode())
    if out and "bom" in words:
        out[0] = b"\xef\xbb\xbf" + out[0]
    if out and "noblank" in words:
        out[-1] = out[-1].rstrip(b"\r\n")
    return out


def _lines(data: Any, words: Words) -> list[str]:
    if isinstance(data, str):
        return [data]
    if "multiline" in words:
        return json.dumps(data, ensure_ascii=False, indent=1).split("\n")
    return [json.dumps(data, ensure_ascii="ascii" in words, separators=(",", ":"))]


class Wire:
    """One answer on its connection."""

    def __init__(self, writer: asyncio.StreamWriter, words: Words) -> None:
        self._writer = writer
        self._words = words
        self._random = random.Random(words.count("seed"))

    async def error(self, status: int, body: bytes, kind: str, *headers: tuple[str, str]) -> None:
        await self._whole(status, body, kind, *headers)

    async def whole(self, body: bytes, kind: str = "application/json") -> None:
        await self._whole(200, body, kind)

    async def _whole(self, status: int, body: bytes, kind: str, *headers: tuple[str, str]) -> None:
        await self._slow()
        if await self._is_broken():
            return
        given = [("content-type", self._kind(kind)), *headers, *self._long()]
        if "gzip" in self._words:
            body = _gzipped(body)
            given.append(("content-encoding", "gzip"))
        given.append(("content-length", str(len(body))))
        await self._send(_head(status, given))
        if "stall" in self._words:
            await self._forever(body[: len(body) // 2])
        for word in ("cut", "reset", "truncate"):
            if word in self._words:
                await self._send(body[: len(body) // 2])
                await self._break(reset=word == "reset")
                return
        if "pace" in self._words:
            for at in range(0, len(body), max(1, len(body) // 20)):
                await self._send(body[at : at + max(1, len(body) // 20)])
                await asyncio.sleep(self._words.number("pace", 5) / 1e3)
            return
        await self._split(body, chunked=False)

    async def stream(self, blocks: list[bytes]) -> None:
        words = self._words
        await self._slow()
        if await self._is_broken():
            return
        given = [
            ("content-type", self._kind("text/event-stream")),
            ("transfer-encoding", "chunked"),
            *self._long(),
        ]
        packing = None
        if "gzip" in words:
            given.append(("content-encoding", "gzip"))
            packing = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        await self._send(_head(200, given))
        for at, block in enumerate(blocks):
            for word in ("stall", "cut", "reset", "truncate"):
                if word in words and at == words.count(word, len(blocks) // 2):
                    if word == "stall":
                        await self._forever(b"")
                    elif word == "truncate":
                        blocks = []
                    else:
                        await self._break(reset=word == "reset")
                        return
            if not blocks:
                break
            if packing is not None:
                block = packing.compress(block) + packing.flush(zlib.Z_SYNC_FLUSH)
            await self._split(block, chunked=True)
            if "pace" in words:
                await asyncio.sleep(words.number("pace", 5) / 1e3)
        if packing is not None:
            await self._split(packing.flush(), chunked=True)
        await self._send(b"0\r\n\r\n")

    async def _split(self, data: bytes, *, chunked: bool) -> None:
        for piece in self._pieces(data):
            await self._send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        words = self._words
        if not data:
            return
        if "split" not in words and "seed" not in words:
            yield data
            return
        at = 0
        while at < len(data):
            size = words.count("split", 1) if "split" in words else self._random.randint(1, 40)
            yield data[at : at + size]
            at += size

    async def _slow(self) -> None:
        if "slow" in self._words:
            await asyncio.sleep(self._words.number("slow", 100) / 1e3)

    async def _is_broken(self) -> bool:
        """Before the head."""
        if "nohead" in self._words:
            await self._break(reset=True)
            return True
        return False

    def _long(self) -> list[tuple[str, str]]:
        size = self._words.count("header")
        return [("x-long", "x" * size)] if size else []

    def _kind(self, kind: str) -> str:
        return "text/plain" if "badtype" in self._words else kind

    async def _forever(self, data: bytes) -> None:
        """Until the client goes."""
        if data:
            await self._send(data)
        await asyncio.Event().wait()

    async def _break(self, *, reset: bool) -> None:
        await asyncio.sleep(0.02)  # what was sent must come first
        if reset and not self._writer.transport.is_closing():
            raw: socket.socket = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self._writer.transport.abort()

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


def _gzipped(body: bytes) -> bytes:
    packing = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    return packing.compress(body) + packing.flush()


def _head(status: int, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {status} Told", "x-request-id: req_faulty", "request-id: req_faulty"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
