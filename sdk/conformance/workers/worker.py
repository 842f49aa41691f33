"""The activities of the conformance scenarios in Python; see ../doc.go.

With the argument "client" it shows instead what the client does, as lines of JSON.
"""

import json
import logging
import os
import sys
import urllib.parse
import urllib.request
from typing import Any, Tuple

import ringi

logging.basicConfig()
worker = ringi.Worker(queue=os.environ.get("RINGI_QUEUE", ""), concurrency=int(os.environ.get("CONCURRENCY", "10")))


def ledger(path: str, body: Any = None) -> Tuple[int, bytes]:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["LEDGER"] + path, data), timeout=10) as answer:
        return answer.status, answer.read()


aside = worker.serve(os.environ.get("RINGI_QUEUE", "") + "-aside", concurrency=1)


@aside.activity("echo")
@worker.activity("echo")
def echo(task: ringi.Task) -> object:
    return task.input


@worker.activity("fail")
def fail(task: ringi.Task) -> object:
    how = task.input
    if task.attempt >= how.get("until", 1000):
        return {"attempt": task.attempt}
    raise ringi.Failure(how["code"], how["message"], retryable=how["retryable"], applied=how.get("applied"), retry_after=how.get("retryAfterMs", 0) / 1000)


@worker.activity("crash")
def crash(task: ringi.Task) -> object:
    raise RuntimeError("nobody thought of it")


@worker.activity("grow")
def grow(task: ringi.Task) -> object:
    return {"text": "x" * task.input["bytes"]}


@worker.activity("hold")
def hold(task: ringi.Task) -> object:
    gate = task.input["gate"]
    ledger("/began", {"gate": gate, "key": task.key, "attempt": task.attempt, "by": "python"})
    while ledger("/gate/" + gate)[0] != 200:
        if task.cancel.wait(0.02):
            ledger("/ended", {"gate": gate, "key": task.key, "reason": task.cancel.reason})
            task.cancel.check()
    return {"key": task.key}


@worker.activity("find")
def find(task: ringi.Task) -> object:
    key = task.input["key"]
    count = json.loads(ledger("/effect/" + urllib.parse.quote(key, safe=""))[1])["count"]
    return {"applied": "yes", "output": {"key": key}} if count else {"applied": "no"}


def client() -> None:
    c = ringi.Client()

    def show(**what: Any) -> None:
        print(ringi.exact.dumps(what), flush=True)

    source = sys.stdin.read()
    published = c.publish(source)
    name = published["name"]
    show(created=published["created"], again=c.publish(source)["created"])
    one, two = (c.start(name, {"n": 9007199254740993, "key": "o-1"}, key="k-1") for _ in range(2))
    show(created=one["created"], again=two["created"], same=one["run"] == two["run"])
    for call in (lambda: c.start(name, {"n": 2}, key="k-1"), lambda: c.show("01a22ccb-9bd7-76c4-83b7-b3a944c13ad1"), lambda: c.publish("ringi: v1\n")):
        try:
            call()
        except ringi.RingiError as error:
            show(code=error.code, hint=bool(error.hint), retryable=error.retryable, problems=len(error.problems) > 0)
    sent = c.send_event("paid", "o-1", {"amount": 1}, id="e-1")
    again = c.send_event("paid", "o-1", {"amount": 1}, id="e-1")
    show(id=sent["id"], outcome=sent["outcome"], again=again["outcome"])
    view = c.wait(one["run"], timeout=30)
    show(status=view["status"], output=view["output"])
    other = c.start(name, {"n": 3, "key": "o-2"})["run"]
    for view in c.watch(other, timeout=30):
        if view["status"] == "waiting":
            c.cancel(other, "ordered twice")
    show(status=view["status"])


if __name__ == "__main__":
    if sys.argv[1:] == ["client"]:
        client()
    else:
        sys.exit(0 if worker.run() else 1)
