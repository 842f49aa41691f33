"""The activities of the conformance scenarios as a program that runs once per
task; see ../doc.go and the package comment of worker/command."""

import json
import os
import signal
import sys
import time
import urllib.parse
import urllib.request

told = False  # to end


def tell(_number, _frame):
    global told
    told = True


def ledger(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["LEDGER"] + path, data), timeout=10) as answer:
        return answer.status, answer.read()


def fail(code, message, retryable=True, applied=None, retryAfterMs=0, until=1000):
    attempt = int(os.environ["RINGI_TASK_ATTEMPT"])
    if attempt >= until:
        print(json.dumps({"attempt": attempt}))
        return
    word = {"code": code, "message": message, "retryable": retryable, "applied": applied, "retryAfterMs": retryAfterMs}
    print("::ringi", json.dumps({name: value for name, value in word.items() if value is not None}), file=sys.stderr)
    sys.exit(1)


def hold(gate):
    signal.signal(signal.SIGTERM, tell)
    key = os.environ["RINGI_TASK_KEY"]
    ledger("/began", {"gate": gate, "key": key, "attempt": int(os.environ["RINGI_TASK_ATTEMPT"]), "by": "command"})
    while ledger("/gate/" + gate)[0] != 200:
        if told:
            ledger("/ended", {"gate": gate, "key": key, "reason": "SIGTERM"})
            sys.exit(1)
        time.sleep(0.02)
    print(json.dumps({"key": key}))


def find(key):
    count = json.loads(ledger("/effect/" + urllib.parse.quote(key, safe=""))[1])["count"]
    print(json.dumps({"applied": "yes", "output": {"key": key}} if count else {"applied": "no"}))


activity, text = os.environ["RINGI_TASK_ACTIVITY"], sys.stdin.buffer.read()
if activity == "echo":
    sys.stdout.buffer.write(text)
elif activity == "crash":
    raise RuntimeError("nobody thought of it")
elif activity == "grow":
    print(json.dumps({"text": "x" * json.loads(text)["bytes"]}))
else:
    {"fail": fail, "hold": hold, "find": find}[activity](**json.loads(text))
