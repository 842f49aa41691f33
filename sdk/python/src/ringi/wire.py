"""One request to a server, and its answer or its error."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.parse
from contextlib import contextmanager
from typing import Any, Iterator, Union

from . import exact
from .error import RingiError

#: Seconds for an answer, on top of what a poll waits. Longer than any commit takes.
ANSWER = 30.0

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0

#: Seconds that another server than the first is asked once the first did not answer.
_HOME_AFTER = 3.0

#: Codes of answers that something in between gave. Of the rest nobody knows what
#: the server would have said.
_CODES = {401: "unauthenticated", 403: "forbidden", 413: "too_large", 429: "limit"}


def pause_after(failures: int, error: RingiError | None = None) -> float:
    """Seconds to pause after so many failures in a row, from 1."""
    pause = min(_FIRST_PAUSE * float(2 ** min(failures - 1, 10)), _LONGEST_PAUSE)
    return max(pause, error.retry_after if error else 0.0)


class Places:
    """The servers of one database, of which any will do. The first is the one to
    ask; while it does not answer another is. Safe for threads."""

    def __init__(self, servers: str) -> None:
        self._all = [_address(server.strip()) for server in servers.split(",")]
        self._at, self._left = 0, 0.0  # the one to ask, and when the first was left
        self._lock = threading.Lock()

    def here(self) -> str:
        """The server to ask now."""
        with self._lock:
            if self._at and time.monotonic() - self._left >= _HOME_AFTER:
                self._at = 0
            return self._all[self._at]

    def failed(self, server: str) -> None:
        """It did not answer, or can answer nothing durably. Of several requests
        that met the same failure the first moves on."""
        with self._lock:
            if self._all[self._at] == server:
                self._left = self._left if self._at else time.monotonic()
                self._at = (self._at + 1) % len(self._all)


def _address(server: str) -> str:
    try:
        url = urllib.parse.urlsplit(server)
        good = url.scheme in ("http", "https") and url.hostname and not url.query and (url.port is None or url.port > 0)
    except ValueError:  # a port that is no number
        good = False
    if not good:
        raise ValueError(f"the server {server!r} is not an address: give http:// or https:// and a host; several are separated by commas")
    return server


class Line:
    """A connection that is kept between requests. One thread at a time calls;
    any thread may hang up."""

    def __init__(self, places: Places, key: str) -> None:
        self._places = places
        self._connect_to(places.here())
        self._headers = {"Accept": "application/json", **({"Authorization": "Bearer " + key} if key else {})}
        self._hung_up = False

    def call(self, method: str, path: str, body: Union[bytes, None] = None, kind: str = "application/json", timeout: float = ANSWER) -> Any:
        """Send one request and return the decoded answer. Raises RingiError."""
        server = self._places.here()
        if server != self._server:
            self._connection.close()
            self._connect_to(server)
        connection = self._connection
        headers = {**self._headers, "Content-Type": kind} if body is not None else self._headers
        sent = False
        try:
            connection.timeout = timeout
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout)
            if self._hung_up:
                raise ConnectionAbortedError("hung up")
            sent = True
            connection.request(method, self._path + path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: hung up in the middle of TLS
            connection.close()
            if not self._hung_up:
                self._places.failed(server)
            raise RingiError(
                "unavailable", f"no answer from {self._server}: {error or type(error).__name__}",
                hint="is it running?", retryable=True, sent=sent,
            ) from error
        if 200 <= answer.status <= 299:
            try:
                return exact.loads(content)
            except ValueError as error:
                raise RingiError(
                    "unavailable", f"the answer of {self._server} is not JSON", hint="check the address",
                    retryable=True, status=answer.status,
                ) from error
        if answer.status == 503:
            self._places.failed(server)
        raise _refusal(answer, content)

    def _connect_to(self, server: str) -> None:
        url = urllib.parse.urlsplit(server)
        make = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        self._connection: http.client.HTTPConnection = make(url.hostname or "", url.port, timeout=ANSWER)
        self._server, self._path = server, url.path.rstrip("/")

    def hang_up(self) -> None:
        """End the request under way, and every later one, without an answer."""
        self._hung_up = True
        sock = self._connection.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was closed already

    def close(self) -> None:
        self._connection.close()


class Lines:
    """As many lines to the servers of one database as are needed at once. Safe for threads."""

    def __init__(self, servers: str, key: str) -> None:
        self._places, self._key = Places(servers), key
        self._idle: list[Line] = []
        self._lock = threading.Lock()

    def new(self) -> Line:
        return Line(self._places, self._key)

    @contextmanager
    def take(self, fresh: bool = False) -> Iterator[Line]:
        """A line for one request; a fresh one cannot have been closed meanwhile."""
        with self._lock:
            line = self._idle.pop() if self._idle and not fresh else None
        line = line or self.new()
        try:
            yield line
        except BaseException:
            line.close()
            self.close()  # if the server went away, it has closed those too
            raise
        with self._lock:
            self._idle.append(line)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for line in idle:
            line.close()


def _refusal(answer: http.client.HTTPResponse, content: bytes) -> RingiError:
    """The error of an answer that is not a success: a problem of RFC 9457, or
    what something in between said."""
    status = answer.status
    wait = answer.getheader("Retry-After", "")
    retry_after = float(wait) if wait.isdecimal() else 0.0
    try:
        problem = exact.loads(content)
        return RingiError(
            problem["code"], problem["detail"], hint=problem.get("hint", ""), retryable=problem["retryable"],
            status=status, retry_after=retry_after, problems=problem.get("problems") or (),
        )
    except (ValueError, LookupError, TypeError):
        return RingiError(
            _CODES.get(status, "unavailable"), f"{status} {answer.reason}, which is not an answer of a ringi server",
            hint="check the address, and what stands in between",
            retryable=status >= 500 or status in (408, 429), status=status, retry_after=retry_after,
        )
