"""What can go wrong, as exceptions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Sequence


class RingiError(Exception):
    """A request that the server refused, or that got no answer.

    Ask what it means, not what it is: `code` is one of a closed set (invalid,
    unauthenticated, forbidden, not_found, start_key_conflict, final, too_large,
    limit, unavailable, internal and a few more), `retryable` says whether the
    same request may succeed later, and `hint` what to do next.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        retryable: bool = False,
        status: int = 0,
        retry_after: float = 0.0,
        problems: Sequence[Any] = (),
        sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retryable = retryable
        self.status = status  # of HTTP; 0 when no answer came
        self.retry_after = retry_after  # seconds that the server asked to wait
        self.problems = list(problems)  # of a definition that was not accepted
        self.sent = sent  # False: the server cannot have seen the request

    @property
    def for_good(self) -> bool:
        """Whether the server has read the request and will never take it as it is.
        What refuses the address or the key may yet be mended."""
        return self.status in (400, 413) and self.code in ("invalid", "too_large")

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class Failure(Exception):
    """How an attempt failed, for activities to raise.

    `code` is what retry.stop_on and catch.on of a definition name. `retryable`
    says whether another attempt may succeed. `applied` is "no" only when the
    call certainly had no effect, "unknown" when it may have had one, and None to
    leave it to the effect contract of the step. `retry_after` is how long the
    service asked to be left alone: seconds, a timedelta, the time at which it ends,
    or the text of its Retry-After header. The next attempt is not made before.

    Any other exception counts as retryable and perhaps applied, with the code
    "error".
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        retryable: bool = False,
        applied: str | None = None,
        retry_after: float | timedelta | datetime | str | None = None,
    ) -> None:
        super().__init__(code, message)
        if applied not in (None, "no", "unknown"):
            raise ValueError(f'applied is {applied!r}: say "no", "unknown" or nothing')
        self.code = code
        self.message = message
        self.retryable = retryable
        self.applied = applied
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class Cancelled(Exception):
    """Raised by Cancellation.check when the function should end. `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
