"""The worker: takes tasks, calls functions, reports what became of them.

One thread for each queue polls, one reports and one extends leases, so that no
two requests of a kind are under way. Each function has a thread of its
own. Everything that they share stands under one condition variable.
"""

from __future__ import annotations

import logging
import os
import queue as queues
import signal
import socket
import threading
import time
import uuid
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from . import exact
from .attempt import BATCH_BYTES, Attempt
from .client import Client
from .error import Cancelled, Failure, RingiError
from .lane import F, Lane
from .task import Task
from .wire import ANSWER, Line, pause_after

log = logging.getLogger("ringi")

_LONG_POLL = 20.0  # seconds that a poll waits for its first task
_QUICK_POLL = 0.1  # an empty poll that comes back sooner is of a server that stops
_BEAT_ANSWER = 5.0  # a heartbeat is given up after that, so that the next comes in time
_BEAT_AGAIN = 1.0  # and is tried again after that
_BEATS_TOGETHER = 0.25  # how much earlier than due a beat goes along with others
_LAST_WORD = 2.0  # for functions to end that were told to, and for their reports
_MOST_AT_ONCE = 500  # items in one request


class Worker:
    """Serves queues of a server. Give it functions with `activity`, which are those
    of `queue`, and with the `activity` of what `serve` returns, then `run`.

    `concurrency` functions of a queue run at once, each in a thread of its own.
    `name` tells this process from others and is drawn unless given. When the
    worker is stopped it waits `drain` seconds for what runs.
    """

    def __init__(
        self, client: Client | None = None, queue: str = "default", *, name: str = "", concurrency: int = 10, drain: float = 30.0,
    ) -> None:
        self.name = name or f"python-{socket.gethostname()[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.queue = queue
        self._client = client or Client()
        self._drain = drain
        self._first = Lane(queue, concurrency, self._client.lines.new())
        self._lanes = [self._first]
        self._stops: queues.SimpleQueue[None] = queues.SimpleQueue()  # its put is safe in a signal handler

        self._changed = threading.Condition()
        self._running = False
        self._stopping = False  # takes no more tasks
        self._ended = False  # says nothing more

    def activity(self, name: str) -> Callable[[F], F]:
        """Let a function stand for an activity of the worker's first queue; see
        Lane.activity."""
        return self._first.activity(name)

    def serve(self, queue: str, *, concurrency: int = 10) -> Lane:
        """Serve one more queue, with slots of its own: a queue that is full holds up
        none of the others. Before `run`."""
        if self._running:
            raise RuntimeError("the worker runs: give it its queues before")
        if any(lane.queue == queue for lane in self._lanes):
            raise ValueError(f"the queue {queue!r} is there already: put its activities together")
        self._lanes.append(Lane(queue, concurrency, self._client.lines.new()))
        return self._lanes[-1]

    def run(self) -> bool:
        """Work until `stop`, SIGTERM or SIGINT; then take no more tasks, wait for
        what runs, and return whether all was reported. A second signal does what
        it would do without a worker. May be called once."""
        if len(self._lanes) > 1 and not self._first.activities:
            self._lanes.remove(self._first)  # only the others were given functions
        for lane in self._lanes:
            if not lane.activities:
                raise ValueError(f"the queue {lane.queue!r} has no activities: without a name to ask for, the worker would take tasks that it cannot do")
        self._running = True
        loops = [threading.Thread(target=loop, name=f"ringi {loop.__name__}", daemon=True) for loop in (self._report, self._beat)]
        loops += [threading.Thread(target=self._poll, args=(lane,), name=f"ringi poll {lane.queue}", daemon=True) for lane in self._lanes]
        for loop in loops:
            loop.start()
        with _signals(self.stop):
            self._stops.get()
            drained = self._finish()
        for loop in loops:
            loop.join(_LAST_WORD)
        for lane in self._lanes:
            lane.line.close()
        return drained

    def stop(self) -> None:
        """Let `run` come to its end. May be called by any thread, and often."""
        self._stops.put(None)

    def _finish(self) -> bool:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for lane in self._lanes:
            lane.line.hang_up()
        with self._changed:
            drained = self._changed.wait_for(lambda: not self._attempts(), self._drain)
            if not drained:
                for attempt in self._attempts():
                    attempt.task.cancel.set("stopping")
                drained = self._changed.wait_for(lambda: not self._attempts(), _LAST_WORD)
            if not drained:
                log.warning("stopped with %d attempts that were not reported", len(self._attempts()))
            self._ended = True
            self._changed.notify_all()
        return drained

    def _attempts(self) -> list[Attempt]:
        return [attempt for lane in self._lanes for attempt in lane.attempts]

    # Tasks come in.

    def _poll(self, lane: Lane) -> None:
        failures = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or lane.room_to_poll() > 0)
                if self._stopping:
                    return
                asked = lane.room_to_poll()
                lane.asked += asked
            began = time.monotonic()
            came: list[Attempt] = []
            error: RingiError | None = None
            try:
                body = {**lane.wish(self.name), "max": asked, "waitMs": int(_LONG_POLL * 1000)}
                _, came = _ask(lane, lane.line, "poll", body, ANSWER + _LONG_POLL)
            except RingiError as trouble:
                error = trouble
            self._take(lane, came, asked)
            if error is None and (came or time.monotonic() - began >= _QUICK_POLL):
                failures = 0
                continue
            failures += 1
            with self._changed:
                if error is not None and not self._stopping:
                    log.warning("poll of queue %s: %s", lane.queue, error)
                self._changed.wait_for(lambda: self._stopping, pause_after(failures, error))

    def _take(self, lane: Lane, attempts: list[Attempt], asked: int) -> None:
        """Give asked slots back and call a function for each task that came."""
        with self._changed:
            lane.asked -= asked
            lane.attempts.update(attempts)
            self._changed.notify_all()
        for attempt in attempts:
            try:
                threading.Thread(target=self._perform, args=(attempt,), name=f"ringi {attempt.task.key}", daemon=True).start()
            except RuntimeError as error:  # no more threads: without a heartbeat the task goes to another worker
                log.warning("%s of run %s was not begun: %s", attempt.task.activity, attempt.task.run, error)
                self._drop(attempt)

    # A task is done.

    def _perform(self, attempt: Attempt) -> None:
        task = attempt.task
        if task.begin and not self._permitted(attempt):
            self._drop(attempt)
            return
        try:
            if task.activity not in attempt.lane.activities:
                raise Failure("no_handler", f"this worker has no activity {task.activity!r}", retryable=True, applied="no")
            attempt.completed(attempt.lane.activities[task.activity](task))
        except BaseException as error:  # also SystemExit: the report must not be lost with the thread
            if not isinstance(error, (Failure, Cancelled)):
                log.warning("%s of run %s", task.activity, task.run, exc_info=error)
            attempt.raised(error)
        with self._changed:
            attempt.finished = time.monotonic()
            attempt.lane.reports.append(attempt)
            self._changed.notify_all()

    def _permitted(self, attempt: Attempt) -> bool:
        """Ask for permission to make a call that must not repeat, until there is
        an answer: that to a repeated question is the same."""
        failures = 0
        while True:
            try:
                (item,), _ = self._ask_each(attempt.lane, "begin", {"worker": self.name}, [attempt.task.name()])
                error = item.get("error")
                if error is None:
                    break
                if not error["retryable"]:
                    log.warning("begin of %s %s was refused: %s", attempt.task.run, attempt.task.step, error["message"])
                    return False
            except RingiError as trouble:
                if trouble.for_good:
                    log.warning("begin of %s %s: %s", attempt.task.run, attempt.task.step, trouble)
                    return False
            failures += 1
            if attempt.task.cancel.wait(pause_after(failures)) or self._ended:
                return False
        with self._changed:
            attempt.begun()
            self._changed.notify_all()
        return item["outcome"] in ("accepted", "repeated")

    def _drop(self, attempt: Attempt) -> None:
        with self._changed:
            attempt.lane.drop(attempt)
            self._changed.notify_all()

    # What became of it is reported.

    def _report(self) -> None:
        failures = 0
        while True:
            batch, want = self._next_batch()
            if not batch:
                return
            lane = batch[0].lane
            try:
                body = {**lane.wish(self.name), "want": want} if want else {"worker": self.name}
                answers, came = self._ask_each(lane, batch[0].verb, body, [a.item for a in batch])
            except RingiError as error:
                self._take(lane, [], want)
                if error.for_good:
                    self._refused_whole(batch, error)
                    continue
                failures += 1
                log.warning("%s: %s", batch[0].verb, error)
                with self._changed:
                    self._changed.wait_for(lambda: self._ended, pause_after(failures, error))
                continue
            failures = 0
            self._take(lane, came, want)
            for attempt, answer in zip(batch, answers):
                self._answered(attempt, answer.get("error"))

    def _next_batch(self) -> tuple[list[Attempt], int]:
        """Wait for reports that are due, and say how many tasks to want along.
        Nothing at the end."""
        with self._changed:
            while not self._ended:
                now = time.monotonic()
                reports = [a for lane in self._lanes for a in lane.reports]
                due = sorted((a for a in reports if a.due <= now), key=lambda a: a.finished)
                if due:
                    lane = due[0].lane
                    want = 0 if self._stopping else lane.room_to_want()
                    lane.asked += want
                    return _together(due), want
                self._changed.wait(min((a.due - now for a in reports), default=None))
            return [], 0

    def _answered(self, attempt: Attempt, error: dict[str, Any] | None) -> None:
        if error is None:
            self._drop(attempt)
        elif error["retryable"]:
            with self._changed:
                attempt.failures += 1
                attempt.due = time.monotonic() + pause_after(attempt.failures)
        else:
            log.warning("%s of %s %s was refused: %s", attempt.verb, attempt.task.run, attempt.task.step, error["message"])
            if not attempt.refused(error["code"], error["message"]):
                self._drop(attempt)

    def _refused_whole(self, batch: list[Attempt], error: RingiError) -> None:
        if len(batch) == 1:
            self._answered(batch[0], {"code": error.code, "message": error.message, "retryable": False})
        for attempt in batch:
            attempt.alone = True

    # Leases are extended.

    def _beat(self) -> None:
        while True:
            due = self._next_beats()
            if not due:
                return
            answers: list[Any] | None = None
            try:
                answers, _ = self._ask_each(self._first, "heartbeat", {"worker": self.name}, [a.task.name() for a in due], _BEAT_ANSWER)
            except RingiError as error:  # nobody said that a lease is lost
                log.warning("heartbeat: %s", error)
            with self._changed:
                now = time.monotonic()
                for i, attempt in enumerate(due):
                    if answers is None:
                        attempt.beat = now + min(attempt.every, _BEAT_AGAIN)
                    elif answers[i]["outcome"] == "stale":
                        attempt.beat = float("inf")
                        attempt.task.cancel.set("lease_lost")
                    else:
                        attempt.beat = now + attempt.every
                        if answers[i].get("cancel"):
                            attempt.task.cancel.set("cancelled")

    def _next_beats(self) -> list[Attempt]:
        with self._changed:
            while not self._ended:
                now = time.monotonic()
                attempts = self._attempts()
                wait = min((a.beat for a in attempts), default=float("inf")) - now
                if wait <= 0:
                    return [a for a in attempts if a.beat - now <= min(_BEATS_TOGETHER, a.every / 2)][:_MOST_AT_ONCE]
                self._changed.wait(None if wait == float("inf") else wait)
            return []

    def _ask_each(
        self, lane: Lane, verb: str, body: dict[str, Any], items: list[dict[str, Any]], timeout: float = ANSWER,
    ) -> tuple[list[Any], list[Attempt]]:
        with self._client.lines.take() as line:
            return _ask(lane, line, verb, {**body, "items": items}, timeout)


def _ask(lane: Lane, line: Line, verb: str, body: dict[str, Any], timeout: float) -> tuple[list[Any], list[Attempt]]:
    """Make one request. Returns an answer for each item, and the tasks that came."""
    answer = line.call("POST", "/v1/tasks/" + verb, exact.dumps(body).encode(), timeout=timeout)
    try:
        answers = [dict(item) for item in answer.get("items") or []]
        came = [Attempt(Task.of(task), lane) for task in answer.get("tasks") or []]
        if len(answers) != len(body.get("items", [])):
            raise ValueError(f"{len(answers)} answers")
        return answers, came
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RingiError("unavailable", f"the answer to {verb} is not that of a ringi server: {error!r}", retryable=True) from error


def _together(due: list[Attempt]) -> list[Attempt]:
    """The oldest report and those of its queue that fit into one request with it."""
    first, size = due[0], 0
    batch: list[Attempt] = []
    if first.alone:
        return [first]
    for attempt in due:
        if attempt.verb != first.verb or attempt.lane is not first.lane or attempt.alone:
            continue
        size += attempt.size + 600  # names, token and punctuation
        if len(batch) == _MOST_AT_ONCE or batch and size > BATCH_BYTES:
            break
        batch.append(attempt)
    return batch


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop at the first SIGTERM or SIGINT; leave a second to whoever had it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def first(_number: int, _frame: object) -> None:
        restore()
        stop()

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()
