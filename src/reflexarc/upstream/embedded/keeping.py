"""What a slot holds when its session changes, when nobody asks, and at the end: saved, erased,
restored. Between pins, files and llama.cpp."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

import aiohttp

from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream.embedded.beginnings import Beginnings, in_common
from reflexarc.upstream.embedded.llama import Llama
from reflexarc.upstream.embedded.options import KV_BYTES_PER_TOKEN, EngineOptions
from reflexarc.upstream.embedded.owners import Owner
from reflexarc.upstream.embedded.pins import Pin, Pins
from reflexarc.upstream.embedded.saved import Manifest, Saved

_log = logging.getLogger("reflexarc.embedded")
_LOOK_S = 1.0
_READ_AGAIN, _RESTORED = 1.0, 0.02
"""What a session that comes back pays for each token of what was here, reading one being 1."""


class Keeping:
    """Without `saved` nothing is written and nothing found."""

    def __init__(
        self,
        llama: Llama,
        pins: Pins,
        saved: Saved | None,
        options: EngineOptions,
        clock_s: Callable[[], float],
    ) -> None:
        self._llama = llama
        self._pins = pins
        self._saved = saved
        self._options = options
        self._clock_s = clock_s
        self._files = asyncio.Lock()
        self._beginnings = Beginnings()
        pins.brings = self.brings
        for pin in pins.all:
            pin.lost = _READ_AGAIN if saved is None else _RESTORED

    def brings(self, owner: Owner, prompt: str) -> int:
        """How many characters of a prompt, at most, a saved state holds: the session's own, or that
        of one that begins alike."""
        if self._saved is None:
            return 0
        if self._has(owner):
            return len(prompt)
        return self._beginnings.nearest(owner, prompt, self._has)[1]

    async def move_in(self, pin: Pin, prompt: str) -> None:
        """The slot holds its session's state, where there is one, else one of the same tenant that
        this prompt begins like, and no other tenant's. A client
        that leaves meanwhile waits for that: half a move would be nobody's state. Raises
        `UpstreamError` where the slot could not be erased."""
        if pin.holds != pin.owner and pin.owner is not None:
            await _to_the_end(self._move(pin, pin.owner, prompt))

    async def look(self) -> None:
        """Saves, again and again, what has changed and was idle for long enough."""
        while True:
            await asyncio.sleep(min(_LOOK_S, self._options.save_after_s / 2))
            for pin in self._pins.all:
                idle_s = self._clock_s() - pin.used_s
                if pin.changed and not pin.at_work and idle_s >= self._options.save_after_s:
                    with self._pins.kept(pin):
                        await _to_the_end(self._save(pin))

    async def save_all(self) -> None:
        """What has changed is saved at once, but for slots still at work."""
        for pin in self._pins.all:
            if pin.changed and not pin.at_work:
                with self._pins.kept(pin):
                    await self._save(pin)

    async def _move(self, pin: Pin, owner: Owner, prompt: str) -> None:
        if pin.changed:
            await self._save(pin)
        if pin.holds is not None and pin.holds.tenant != owner.tenant:
            await self._erase(pin)
        here = in_common(pin.prompt, prompt)
        # From here on what it holds is this tenant's, however far the rest comes.
        pin.holds = owner
        pin.prompt = ""
        pin.changed = False
        source: Owner | None = owner
        if not self._has(owner):
            source, there = self._beginnings.nearest(owner, prompt, self._has)
            source = source if there > here else None
        if source is not None:
            await self._restore(pin, source)

    def _has(self, owner: Owner) -> bool:
        return self._saved is not None and self._saved.has(owner.name)

    async def _erase(self, pin: Pin) -> None:
        await self._llama.erase(pin.slot)
        pin.holds, pin.tokens, pin.prompt, pin.changed = None, 0, "", False

    async def _save(self, pin: Pin) -> None:
        pin.changed, pin.lost = False, _READ_AGAIN
        too_small = pin.tokens is not None and pin.tokens < self._options.save_from_tokens
        if self._saved is None or pin.holds is None or too_small:
            return
        saved, owner, name, prompt = self._saved, pin.holds, pin.holds.name, pin.prompt
        tokens = self._options.context_tokens if pin.tokens is None else pin.tokens
        about_bytes = tokens * KV_BYTES_PER_TOKEN[self._options.kv_type]
        async with self._files:
            draft = None
            try:
                if not await asyncio.to_thread(saved.own):
                    return
                draft = await asyncio.to_thread(saved.draft, name, about_bytes)
                if draft is None:
                    return
                written = await self._llama.save(pin.slot, draft)
                if written >= self._options.save_from_tokens:
                    if await asyncio.to_thread(saved.keep, name, draft, written):
                        self._beginnings.keep(owner, prompt)
                        pin.lost = _RESTORED
                else:
                    saved.drop(draft)
            except (UpstreamError, aiohttp.ClientError, OSError) as error:
                _log.warning("a slot's state could not be saved: %s", error)
                if draft is not None:
                    saved.drop(draft)

    async def _restore(self, pin: Pin, owner: Owner) -> None:
        if self._saved is None:
            return
        saved = self._saved
        async with self._files:
            try:
                has = await asyncio.to_thread(saved.own)
                found = await asyncio.to_thread(saved.begin, owner.name) if has else None
                if found is None:
                    return
                loaded = await self._loaded(pin, found)
                await asyncio.to_thread(saved.end, owner.name, loaded=loaded)
            except OSError as error:
                _log.warning("saved states cannot be used: %s", error)
                return
        pin.tokens = found.tokens if loaded else None
        if not loaded:
            await self._llama.erase(pin.slot)
            pin.tokens = 0

    async def _loaded(self, pin: Pin, found: Manifest) -> bool:
        try:
            await self._llama.restore(pin.slot, found.file)
        except (UpstreamError, aiohttp.ClientError) as error:
            _log.warning("a saved state could not be loaded: %s", error)
            return False
        return True


async def _to_the_end(work: Coroutine[None, None, None]) -> None:
    """Who is cancelled meanwhile is so afterwards."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
