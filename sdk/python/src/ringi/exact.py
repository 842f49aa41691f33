"""JSON without floats: whole numbers are int, others Decimal.

The json module reads decimals exactly when asked to, but cannot write them, so
the writer is here.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Mapping


class Encoded:
    """Text that is JSON already and is written as it is."""

    def __init__(self, text: str) -> None:
        self.text = text


def loads(text: bytes | str) -> Any:
    """Read JSON. No digit of a number is lost. Raises ValueError."""
    try:
        return json.loads(text, parse_float=Decimal, parse_int=_whole, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deep") from None


def dumps(value: Any) -> str:
    """Write JSON. Raises TypeError or ValueError for what JSON cannot hold."""
    out: list[str] = []
    _write(value, out.append)
    return "".join(out)


def _whole(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:  # more digits than Python turns into an int unless told to
        return Decimal(text)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _write(value: Any, put: Any) -> None:
    if value is None:
        put("null")
    elif isinstance(value, bool):
        put("true" if value else "false")
    elif isinstance(value, str):
        put(encode_basestring(value))
    elif isinstance(value, int):
        put(int.__repr__(value))
    elif isinstance(value, (Decimal, float)):
        if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
            raise ValueError(f"{value} is not JSON")
        put(str(value) if isinstance(value, Decimal) else float.__repr__(value))
    elif isinstance(value, Mapping):
        _write_object(value, put)
    elif isinstance(value, (list, tuple)):
        before = "["
        for item in value:
            put(before)
            _write(item, put)
            before = ","
        put("]" if value else "[]")
    elif isinstance(value, Encoded):
        put(value.text)
    else:
        raise TypeError(f"{type(value).__name__} is not JSON: make it a dict, list, str, int, Decimal, bool or None")


def _write_object(value: Mapping[Any, Any], put: Any) -> None:
    before = "{"
    for name, item in value.items():
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} of a member is not text")
        put(before + encode_basestring(name) + ":")
        _write(item, put)
        before = ","
    put("}" if value else "{}")
