"""A queue that a worker serves, with slots of its own."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from .attempt import Attempt
    from .task import Task
    from .wire import Line

Activity = Callable[["Task"], object]
F = TypeVar("F", bound=Activity)


class Lane:
    """A queue of a worker: `Worker.serve` makes one. Give it functions with `activity`.

    All but `activity` is the worker's, and stands under its condition variable.
    """

    def __init__(self, queue: str, concurrency: int, line: Line) -> None:
        if concurrency < 1:
            raise ValueError("concurrency is the number of functions that run at once: at least 1")
        self.queue = queue
        self.slots = concurrency
        self.line = line  # of its polls
        self.activities: dict[str, Activity] = {}
        self.attempts: set[Attempt] = set()  # all that are held
        self.reports: list[Attempt] = []  # those to report, in order of finishing
        self.asked = 0  # slots that a request under way asks tasks for

    def activity(self, name: str) -> Callable[[F], F]:
        """Let a function stand for an activity. It gets a Task and returns what
        exact JSON can hold: dict, list, str, int, Decimal, bool, None. It raises
        Failure to say how it failed. It cannot be `async`: it has a thread."""
        def register(function: F) -> F:
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"the activity {name!r} is async, and nobody would await it: make it a plain function, which may call asyncio.run")
            if name in self.activities:
                raise ValueError(f"the activity {name!r} is there twice")
            self.activities[name] = function
            return function
        return register

    def wish(self, worker: str) -> dict[str, Any]:
        """What a request for tasks names."""
        return {"worker": worker, "queue": self.queue, "activities": list(self.activities)}

    def room_to_poll(self) -> int:
        """Slots to ask tasks for in a poll: those of functions that have just ended
        are left to their reports."""
        return max(0, self.slots - len(self.attempts) - self.asked)

    def room_to_want(self) -> int:
        """Slots to ask tasks for along with a report. A worker that cannot report
        takes no more."""
        running = len(self.attempts) - len(self.reports)
        return max(0, min(self.slots, 2 * self.slots - len(self.reports)) - running - self.asked)

    def drop(self, attempt: Attempt) -> None:
        """Let go of an attempt."""
        self.attempts.discard(attempt)
        if attempt in self.reports:
            self.reports.remove(attempt)
