"""A task, and the word that its function should end."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Mapping

from .error import Cancelled


class Cancellation:
    """Says that a function should end, and why. Nothing is interrupted: a
    function that may run for long asks it now and then, or waits on it.

    `reason` is "" while all is well, then "timed_out" (the attempt's time is
    up), "lease_lost" (the attempt is no longer ours), "cancelled" (the run is
    being undone or has ended) or "stopping" (the worker ends).
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._set = threading.Event()
        self._reason = ""

    @property
    def reason(self) -> str:
        return self._reason or ("timed_out" if time.monotonic() >= self._deadline else "")

    def __bool__(self) -> bool:
        return self.reason != ""

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake when the function should end, and return whether it should."""
        self._set.wait(max(0.0, min(seconds, self._deadline - time.monotonic())))
        return bool(self)

    def check(self) -> None:
        """Raise Cancelled if the function should end."""
        if self:
            raise Cancelled(self.reason)

    def set(self, reason: str) -> None:
        """Say that the function should end. The first reason stays."""
        self._reason = self._reason or reason
        self._set.set()


@dataclass(frozen=True)
class Task:
    """One attempt at an activity. Numbers of `input` are int and Decimal."""

    activity: str
    input: Any
    key: str  #: the idempotency key, the same in every attempt: hand it to the outside service
    run: str
    step: str
    direction: str  #: "" for the step itself, "undo", or "probe"
    attempt: int
    effect: str  #: pure, idempotent, probeable or at_most_once
    definition: str
    version: int
    queue: str = "default"
    token: int = 0
    begin: bool = False  #: the worker asks for permission before it calls the function
    lease: float = 5.0  #: seconds, of the hand-over
    heartbeat: float = 30.0  #: seconds, of the lease that a heartbeat gives
    arrived: float = field(default_factory=time.monotonic)
    cancel: Cancellation = field(default_factory=lambda: Cancellation(float("inf")))

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Task:
        """The task that a server sent just now."""
        now = time.monotonic()
        timeout = sent["timeoutMs"] / 1000 or float("inf")
        return cls(
            activity=sent["activity"], input=sent["input"], key=sent["key"], run=sent["run"], step=sent["step"],
            direction=sent.get("direction", ""), attempt=sent["attempt"], effect=sent["effect"],
            definition=sent["definition"], version=sent["version"], queue=sent["queue"], token=sent["token"],
            begin=sent["begin"], lease=sent["leaseMs"] / 1000, heartbeat=sent["heartbeatMs"] / 1000 or 30.0,
            arrived=now, cancel=Cancellation(now + timeout),
        )

    def name(self) -> dict[str, Any]:
        """Which attempt this is, as the server wants it with everything that is said about it."""
        name = {"run": self.run, "step": self.step, "attempt": self.attempt, "token": self.token}
        return {**name, "direction": self.direction} if self.direction else name
