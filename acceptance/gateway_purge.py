"""`store purge`, proven by looking for what was planted in every file that could hold it.

A real `reflexarc serve` records in full what two tenants say through it to a scripted System 2,
learns a reflex from the store, and acts on it, while `reflexarc store purge` runs beside it: by
tenant, by session, by day. What is planted is drawn from a seed; run alone:
`python -m acceptance.gateway_purge [--seed N]`.
"""

import argparse
import json
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from acceptance.gateway_purge_world import LONGEST_HELD_S, TASKS, TOOLS, Person, upstream
from acceptance.lines import Lines
from acceptance.processes import REFLEXARC, Process, process
from reflexarc.reflex.artifact import read_artifact, unpack
from reflexarc.store.place import DATABASE

_PATIENCE_S = 30.0
KEYS = {"A": "ACCEPTANCE_KEY_A", "B": "ACCEPTANCE_KEY_B"}


def measure(lines: Lines, seed: int) -> None:
    """Lines 4.*."""
    with tempfile.TemporaryDirectory(prefix="reflexarc-purge-") as folder:
        _Run(lines, seed, Path(folder)).measure()


# --- looking -----------------------------------------------------------------------------------


def forms(value: str) -> set[bytes]:
    """A value as files may hold it: plain, as JSON in two ways, JSON in JSON; UTF-8 and UTF-16."""
    texts = {value.lower()}
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        texts |= {once.lower(), json.dumps(once, ensure_ascii=ascii_only)[1:-1].lower()}
    return {
        text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-16-le", "utf-16-be")
    }


def held(paths: Sequence[Path], values: Sequence[str]) -> dict[str, set[str]]:
    """Which values stand in which files, in upper or lower case; an artifact is unpacked too."""
    found: dict[str, set[str]] = {}
    for path in paths:
        data = path.read_bytes()
        if path.suffix == ".reflex":
            header, arrays = unpack(read_artifact(path))
            data += b"".join(
                [
                    json.dumps(header, ensure_ascii=False).encode(),
                    *(a.tobytes() for a in arrays.values()),
                ]
            )
        # Lower case of ASCII in place, and of what is text beyond it.
        folded = data.lower() + b"\0" + data.decode("utf-8", "replace").lower().encode()
        there = {value for value in values if any(form in folded for form in forms(value))}
        if there:
            found[path.name] = there
    return found


def _last(done: "subprocess.CompletedProcess[str]") -> str:
    said = (done.stdout + done.stderr).strip().splitlines()
    # Where this run's folder lay is of no interest.
    return re.sub(r"/\S*/", "", "; ".join(said[-3:]))


class _Run:
    def __init__(self, lines: Lines, seed: int, folder: Path) -> None:
        draw = random.Random(seed)
        self._lines = lines
        self._folder = folder
        self._state = folder / "state"
        self._artifact = folder / "agent.reflex"
        self._a = Person(draw, "A")
        self._b = Person(draw, "B")
        self._environment = {
            **os.environ, KEYS["A"]: self._a.key, KEYS["B"]: self._b.key,
            "REFLEXARC_STATE": str(self._state),
        }  # fmt: skip
        self._base = ""
        self._filed: dict[str, Any] = {}
        self._go_on = threading.Event()

    def measure(self) -> None:
        with upstream() as (url, self._filed, self._go_on):
            self._record_and_learn(url)
            with self._gateway(url, "live") as gateway:
                self._by_tenant()
                self._by_session()
                self._by_day()
        log = self._folder / "gateway.log"
        log.write_text("".join(gateway.said))
        planted = sorted(self._a.planted | self._b.planted)
        aloud = held([log], planted).get(log.name, set())
        self._lines.add(
            "4.11", "what the gateway said aloud", "no planted value",
            f"{len(aloud)} of {len(planted)}", not aloud,
        )  # fmt: skip

    def _config(self, url: str, mode: str) -> Path:
        config = self._folder / f"{mode}.toml"
        reflex = f'reflex = "{self._artifact}"\n' if mode == "live" else ""
        config.write_text(
            f'state = "{self._state}"\n[[route]]\nupstream = "{url}"\nrecord = "full"\n'
            f'mode = "{mode}"\nmax_error = 0.1\ndeadline_ms = 5000.0\naudit = 0.0\n{reflex}'
        )
        return config

    @contextmanager
    def _gateway(self, url: str, mode: str) -> Generator[Process]:
        config = self._config(url, mode)
        with process("serve", "--config", str(config), "--port", "0") as gateway:
            self._base = gateway.base
            yield gateway

    def _record_and_learn(self, url: str) -> None:
        with self._gateway(url, "shadow"):
            for person in (self._a, self._b):
                for number in range(TASKS):
                    self._play(person, number)
        done = self._run("learn", "--from-store", "-o", str(self._artifact), "--max-error", "0.1")
        if done.returncode != 0:
            raise RuntimeError(f"learning from the store: {_last(done)}")
        everywhere = set[str]().union(*held(self._files(), sorted(self._a.planted)).values())
        self._lines.add(
            "4.1", "planted by tenant A, found in the store before the purge", "all",
            f"{len(everywhere)} of {len(self._a.planted)}", everywhere == self._a.planted,
        )  # fmt: skip
        found = held([self._artifact], [self._a.depot])
        self._lines.add(
            "4.2", "the artifact learned from the store holds a constant of A", "it does",
            "it does" if found else "it does not", bool(found),
        )  # fmt: skip

    def _by_tenant(self) -> None:
        decision, said = self._ask(self._a, 0, 4)
        self._lines.add(
            "4.3", "System 1 acts with it before the purge", "act, with the constant", decision,
            decision.startswith("live; act; get_order") and self._a.depot in said,
        )  # fmt: skip
        # One request of A is with System 2 while the purge runs, and answered after it.
        late = threading.Thread(target=self._ask, args=(self._a, 1, 6, {"x-hold": "1"}))
        late.start()
        time.sleep(0.5)
        done = self._run("store", "purge", "--tenant-key-env", KEYS["A"], "--yes")
        on_its_way = late.is_alive()
        self._go_on.set()
        late.join()
        time.sleep(1.0)  # what is to be recorded of it is written within 0.2 s
        self._lines.add(
            "4.4", "purge by tenant while one of its requests is with System 2",
            "proven, learned again, before that request ends",
            f"exit {done.returncode}; {_last(done)}",
            done.returncode == 0 and on_its_way and "learned again" in done.stdout,
        )  # fmt: skip
        self._none_left("4.5", "after the purge by tenant", sorted(self._a.planted))
        self._others_stay("4.6", TASKS, set())
        # A asks once more: what it says is recorded again, but System 1 has nothing for it.
        decision, said = self._until(self._a, lambda decision: "; act" not in decision)
        self._lines.add(
            "4.7", "the running gateway asked again as A", "escalates, A's constant unknown",
            decision, decision.startswith("live; escalate"),
        )  # fmt: skip
        decision, said = self._until(self._b, lambda decision: "; act" in decision)
        self._lines.add(
            "4.7b", "the same gateway asked as B", "acts, with B's constant", decision,
            decision.startswith("live; act; get_parcel") and self._b.depot in said,
        )  # fmt: skip

    def _by_session(self) -> None:
        one = self._b.sessions[3]
        done = self._run("store", "purge", "--session", one["session"], "--yes")
        self._lines.add(
            "4.8", "purge by session", "proven", f"exit {done.returncode}; {_last(done)}",
            done.returncode == 0,
        )  # fmt: skip
        self._none_left("4.8s", "after the purge by session", one["planted"])
        self._others_stay("4.8t", TASKS - 1, set(one["planted"]))

    def _by_day(self) -> None:
        done = self._run("store", "purge", "--before", "2200-01-01", "--yes")
        self._lines.add(
            "4.9", "purge of all: too little remains to learn from", "proven, artifact removed",
            f"exit {done.returncode}; {_last(done)}",
            done.returncode == 0 and not self._artifact.exists(),
        )  # fmt: skip
        self._none_left("4.9s", "after the purge by day", sorted(self._a.planted | self._b.planted))
        decision, _ = self._until(self._b, lambda decision: "; act" not in decision)
        self._lines.add(
            "4.9g", "the running gateway, its artifact removed", "escalates", decision,
            decision.startswith("live; escalate"),
        )  # fmt: skip
        verified = self._run("audit", "verify", "--json")
        trail = self._run("audit", "show", "--json", "--what", "purge").stdout
        purges = sum(one["what"] == "purge" for one in json.loads(trail))
        told = [value for value in self._a.planted | self._b.planted if value in trail]
        self._lines.add(
            "4.10", "the audit trail holds and has the purges, without values", "3 purges",
            f"{purges} purges, {len(told)} values, verify exits {verified.returncode}",
            purges == 3 and not told and verified.returncode == 0,
        )  # fmt: skip

    # --- parts ---------------------------------------------------------------------------------

    def _none_left(self, identity: str, when: str, values: Sequence[str]) -> None:
        files = self._files()
        if self._artifact.exists():
            files.append(self._artifact)
        found = held(files, values)
        listed = self._folder / "values.txt"
        # One a line: a value with line feeds is looked for whole above, and here by its parts.
        listed.write_text(
            "\n".join(part for value in values for part in value.splitlines() if part.strip())
        )
        scan = self._run("reflex", "scan", *map(str, files), "--values-file", str(listed))
        listed.unlink()
        names = ", ".join(path.name for path in files)
        self._lines.add(
            identity, f"{when}: planted values in any file", "0, and scan finds none",
            f"{len(set[str]().union(*found.values()))} of {len(values)} in {names}; scan exits "
            f"{scan.returncode}" + (f"; in {sorted(found)}" if found else ""),
            not found and scan.returncode == 0,
        )  # fmt: skip

    def _others_stay(self, identity: str, tasks: int, purged: set[str]) -> None:
        exported = self._folder / "export.jsonl"
        done = self._run("store", "export", "-o", str(exported))
        sessions = [json.loads(line) for line in exported.read_text().splitlines()]
        exported.unlink()
        of_b = {one["task"] for one in self._b.sessions}
        found = {one["task"] for one in sessions} & of_b
        values = self._b.planted - purged
        there = set[str]().union(*held(self._files(), sorted(values)).values())
        self._lines.add(
            identity, "what tenant B said otherwise is there and exports",
            f"{tasks} tasks, every value", f"{len(found)} tasks, {len(there)} of {len(values)}",
            done.returncode == 0 and len(found) == tasks and there == values,
        )  # fmt: skip

    def _files(self) -> list[Path]:
        """Everything in the state directory, the database among it."""
        found = sorted(path for path in self._state.rglob("*") if path.is_file())
        if self._state / DATABASE not in found:
            raise RuntimeError("there is no database to look into")
        return found

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            (*REFLEXARC, *command), capture_output=True, text=True, env=self._environment
        )

    def _play(self, person: Person, number: int) -> None:
        for place, turn in enumerate(person.sessions[number]["turns"]):
            if turn["role"] == "assistant":
                self._ask(person, number, place)

    def _until(self, person: Person, wanted: Callable[[str], bool]) -> tuple[str, str]:
        """Asks until the decision is as wanted, or patience ends."""
        end_s = time.monotonic() + _PATIENCE_S
        while True:
            decision, said = self._ask(person, 0, 4)
            if wanted(decision) or time.monotonic() > end_s:
                return decision, said
            time.sleep(0.3)

    def _ask(
        self, person: Person, number: int, place: int, more: dict[str, str] | None = None
    ) -> tuple[str, str]:
        """The decision, and the answer's body."""
        one = person.sessions[number]
        turn = f"{person.tenant}:{number}:{place}"
        self._filed[turn] = one["turns"][place]
        body = {
            "model": "m", "messages": one["turns"][:place], "tools": TOOLS[person.tenant]
        }  # fmt: skip
        request = Request(
            f"{self._base}/v1/chat/completions",
            json.dumps(body).encode(),
            {
                "content-type": "application/json",
                "authorization": f"Bearer {person.key}",
                "x-reflexarc-session": one["session"],
                "x-reflexarc-task": one["task"],
                "x-turn": turn,
                **(more or {}),
            },
        )
        with urlopen(request, timeout=LONGEST_HELD_S + 30) as answer:
            return answer.headers["x-reflexarc-decision"] or "", answer.read().decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.gateway_purge")
    parser.add_argument("--seed", type=int, help="of what is planted; without it another each time")
    given: int | None = parser.parse_args().seed
    seed = secrets.randbelow(10**6) if given is None else given
    lines = Lines("gateway_purge", cores=2)
    lines.say(f"seed {seed}")
    lines.part("4", "Purge", lambda: measure(lines, seed))
    sys.exit(lines.finish(write=False))


if __name__ == "__main__":
    main()
