"""An attempt that a worker holds: what runs, what is to be reported, and when
its lease is extended next."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from . import exact
from .error import Failure
from .lane import Lane
from .task import Task

#: The first heartbeat of a task that still runs, in seconds after its arrival:
#: the server wants it within two.
_FIRST_BEAT = 1.5
#: Leaves room for two that get lost.
_BEATS_PER_LEASE = 3
#: How much of outputs goes into one request, in bytes: a body holds 1 MiB.
BATCH_BYTES = 768 << 10
#: Limits of what is said about a failure, in bytes.
_MAX_CODE, _MAX_MESSAGE = 256, 4000
#: The longest pause that counts, in seconds: the server takes no longer one.
_MAX_PAUSE = 86_400.0


class Attempt:
    """One attempt, from its arrival until its report was taken."""

    def __init__(self, task: Task, lane: Lane) -> None:
        self.task = task
        self.lane = lane
        self.every = task.heartbeat / _BEATS_PER_LEASE
        first = min(_FIRST_BEAT, task.lease / _BEATS_PER_LEASE if task.lease else _FIRST_BEAT)
        self.beat = float("inf") if task.begin else task.arrived + first  # when the next heartbeat is due
        self.verb = ""  # complete or fail, once there is something to report
        self.item: dict[str, Any] = {}  # of that report
        self.size = 0  # of its output, in bytes
        self.finished = float("inf")  # when the function ended
        self.due = 0.0  # not reported before
        self.failures = 0  # how often the report was put off
        self.alone = False  # something in its company was refused: it goes by itself

    def begun(self) -> None:
        """The permission came, and with it a lease."""
        self.beat = time.monotonic() + self.every

    def completed(self, output: Any) -> None:
        """The function returned."""
        try:
            text = exact.dumps(output)
            size = len(text.encode())
        except (TypeError, ValueError, RecursionError) as error:
            self.failed(Failure("bad_output_value", f"the output is not JSON: {error}", applied="unknown"))
            return
        if size > BATCH_BYTES:
            self.failed(Failure("output_too_large", f"the output has {size} bytes, more than a request holds", applied="unknown"))
            return
        self.verb, self.item, self.size = "complete", {**self.task.name(), "output": exact.Encoded(text)}, size

    def failed(self, failure: Failure) -> None:
        """The function failed, or its output cannot be taken. What a function put
        into the failure may be of any type: it is reported all the same."""
        item: dict[str, Any] = {
            **self.task.name(),
            "code": _sendable(failure.code, _MAX_CODE) or "error",
            "message": _sendable(failure.message, _MAX_MESSAGE),
            "retryable": bool(failure.retryable),
        }
        if failure.applied:
            item["applied"] = failure.applied if failure.applied in ("no", "unknown") else "unknown"
        pause = _seconds(failure.retry_after)
        if pause > 0:
            item["retryAfterMs"] = round(pause * 1000)
        self.verb, self.item, self.size = "fail", item, _MAX_MESSAGE

    def raised(self, error: BaseException) -> None:
        """The function raised something."""
        if isinstance(error, Failure):
            try:
                self.failed(error)
                return
            except Exception:  # a subclass that is no whole Failure
                pass
        reason = self.task.cancel.reason
        text = f"{type(error).__name__}: {_text(error)}"
        if reason == "timed_out":
            self.failed(Failure("timed_out", text, retryable=True))
        elif reason:
            self.failed(Failure("interrupted", f"{reason}: {text}", retryable=True))
        else:
            self.failed(Failure("error", text, retryable=True))

    def refused(self, code: str, message: str) -> bool:
        """The server will never take the report. Reports whether there is another
        one to make: the call was made, and only what it answered cannot be taken."""
        if self.verb != "complete" or code not in ("invalid", "too_large"):
            return False
        ours = "output_too_large" if code == "too_large" else "bad_output_value"
        self.failed(Failure(ours, message, applied="unknown"))
        return True


def _text(value: object) -> str:
    """What a value says of itself. Never raises: it may be the exception of others."""
    try:
        return str(value)
    except Exception:
        return "(it cannot be shown)"


def _seconds(value: object) -> float:
    """A pause: a number, a timedelta, the time at which it ends, or the text of a
    Retry-After header, which is seconds or a date. Else 0."""
    try:
        if isinstance(value, str) and not value.strip().replace(".", "", 1).isdecimal():
            value = parsedate_to_datetime(value)
        if isinstance(value, datetime):
            value = (value if value.tzinfo else value.replace(tzinfo=timezone.utc)) - datetime.now(timezone.utc)
        seconds = value.total_seconds() if isinstance(value, timedelta) else float(value or 0)  # type: ignore[arg-type]  # any other is the exception
    except (TypeError, ValueError, OverflowError, IndexError):
        return 0.0
    return 0.0 if math.isnan(seconds) else min(seconds, _MAX_PAUSE)


def _sendable(value: object, most: int) -> str:
    """Text as the server takes it: UTF-8 without NUL, and not too long."""
    text = "" if value is None else _text(value)
    return text.replace("\0", "").encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
