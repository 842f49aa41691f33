"""The client: publish definitions, start runs and look after them."""

from __future__ import annotations

import os
import time
import uuid
from decimal import Decimal
from typing import Any, Iterator, TypedDict, cast
from urllib.parse import quote, urlencode

from . import exact
from .error import RingiError
from .wire import ANSWER, Lines, pause_after

#: Statuses that a run keeps for ever.
FINAL = frozenset({"completed", "failed", "compensated", "cancelled", "terminated"})

_DEFAULT_SERVER = "http://127.0.0.1:7070"
_LONGEST_LOOK = 1.0  # seconds between two looks at a run that does not change


class Published(TypedDict):
    """A definition version. created is False if it was there already."""

    name: str
    version: int
    digest: str
    created: bool


class Started(TypedDict):
    """A run. created is False if the start key had its run already."""

    run: str
    created: bool
    version: int
    status: str


class Sent(TypedDict):
    """A stored event. outcome is "accepted" or "repeated"."""

    id: str
    outcome: str


class Done(TypedDict):
    """What became of a command. outcome is "accepted" or "repeated"."""

    run: str
    seq: int
    version: int
    status: str
    outcome: str


class Cause(TypedDict, total=False):
    """Why something failed."""

    step: str
    code: str
    message: str


class Step(TypedDict, total=False):
    """A step of a run. outcome is "open" until it has ended."""

    id: str
    outcome: str
    attempts: int
    undo: str
    output: Any
    error: Cause


class Run(TypedDict, total=False):
    """A run as the server shows it. Fields that do not apply are absent."""

    run: str
    definition: str
    version: int
    key: str
    title: str
    status: str
    waitingFor: str
    requester: str
    labels: dict[str, str]
    startedAt: str
    endedAt: str
    seq: int
    steps: list[Step]
    output: Any
    cause: Cause
    effectsLeft: list[str]
    incidents: list[dict[str, Any]]
    waits: list[dict[str, Any]]


class Client:
    """A server that is reached over HTTP. Safe for threads.

    `server` is RINGI_SERVER or http://127.0.0.1:7070 unless given; of several on
    one database, separated by commas, the next is asked while one is away. `key` is the
    content of the file that RINGI_KEY_FILE names. A request that got no answer,
    or that may succeed later, is sent again until `patience` seconds are over:
    every method may be repeated without harm, except `start` without a key,
    which is sent again only if the server cannot have seen it.
    """

    def __init__(self, server: str | None = None, key: str | None = None, *, patience: float = 30.0) -> None:
        if key is None:
            key = _read(os.environ.get("RINGI_KEY_FILE"))
        self.server = server or os.environ.get("RINGI_SERVER") or _DEFAULT_SERVER
        self.lines = Lines(self.server, key)
        self._patience = patience

    def publish(self, source: str, file: str = "") -> Published:
        """Store a definition, or find the version that is the same. The problems
        of one that is not accepted are in RingiError.problems."""
        path = "/v1/definitions" + (f"?{urlencode({'file': file})}" if file else "")
        return cast(Published, self._repeat("POST", path, source.encode(), "application/yaml"))

    def start(
        self, definition: str, input: Any = None, *, key: str = "", version: int = 0, on_behalf_of: str = "", event_id: str = "",
    ) -> Started:
        """Start a run. One key, one run: repeats with the same input get the run
        that exists, others are refused with start_key_conflict."""
        body = {"definition": definition, "input": input}
        body.update({k: v for k, v in (("key", key), ("version", version), ("onBehalfOf", on_behalf_of), ("eventId", event_id)) if v})
        return cast(Started, self._repeat("POST", "/v1/runs", exact.dumps(body).encode(), once=not key))

    def show(self, run: str) -> Run:
        """Read a run."""
        return cast(Run, self._repeat("GET", _of(run)))

    def watch(self, run: str, timeout: float | None = None) -> Iterator[Run]:
        """Yield a run whenever it has changed, until it has ended. Raises
        TimeoutError after so many seconds. A run with an incident has not ended:
        it waits for a person."""
        began, look, seen = time.monotonic(), 0.05, None
        while True:
            view = self.show(run)
            if view["seq"] != seen:
                seen, look = view["seq"], 0.05
                yield view
            if view["status"] in FINAL:
                return
            left = float("inf") if timeout is None else began + timeout - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"run {run} has not ended after {timeout} s: it is {view['status']} {view.get('waitingFor', '')}".rstrip())
            time.sleep(min(look, left))
            look = min(look * 1.5, _LONGEST_LOOK)

    def wait(self, run: str, timeout: float | None = None) -> Run:
        """Wait until a run has ended, in whatever way, and return it."""
        view: Run = {}
        for view in self.watch(run, timeout):
            pass
        return view

    def send_event(self, name: str, key: str = "", data: Any = None, *, id: str | None = None, keep: float = 0.0) -> Sent:
        """Send an event to the runs that wait for its name and key, now or within
        `keep` seconds (0: a day). A repeated id is dropped; None draws one."""
        body = {"id": id or str(uuid.uuid4()), "name": name, "data": data}
        body.update({k: v for k, v in (("key", key), ("keepMs", int(Decimal(str(keep)) * 1000))) if v})
        return cast(Sent, self._repeat("POST", "/v1/events", exact.dumps(body).encode()))

    def cancel(self, run: str, reason: str) -> Done:
        """End a run after undoing what it did. The reason is kept."""
        return cast(Done, self._repeat("POST", _of(run) + "/cancel", exact.dumps({"reason": reason}).encode()))

    def close(self) -> None:
        """Give idle connections back."""
        self.lines.close()

    def _repeat(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json", once: bool = False) -> Any:
        """Send a request until it is answered, or refused for good. With once, an
        answer that got lost is an error, since nobody knows what it said."""
        until, failures = time.monotonic() + self._patience, 0
        while True:
            try:
                with self.lines.take(fresh=once) as line:
                    return line.call(method, path, body, kind, ANSWER)
            except RingiError as error:
                failures += 1
                pause = pause_after(failures, error)
                lost = once and error.sent and error.status != 429
                if lost or not error.retryable or time.monotonic() + pause > until:
                    raise
            time.sleep(pause)


def _of(run: str) -> str:
    return "/v1/runs/" + quote(run, safe="")


def _read(path: str | None) -> str:
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
