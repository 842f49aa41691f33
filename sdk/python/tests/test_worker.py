import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any

import ringi
from fake import Answer, Fake, accepted, task


class Worker(unittest.TestCase):
    """The rules that a real server cannot be made to show; sdk/conformance has the rest."""

    def work(self, tasks: list[dict[str, Any]], function: Any, last: str = "", **answers: Any) -> Fake:
        """Let a worker do tasks, with what the server answers to each verb, until
        all were reported, or the verb last was asked."""
        left, lock = list(tasks), threading.Lock()

        def answer(path: str, body: Any) -> Answer:
            verb = path.rpartition("/")[2]
            if verb == "poll":
                with lock:
                    came, left[:] = left[: body["max"]], left[body["max"] :]
                if not came:
                    time.sleep(0.02)
                return 200, {"tasks": came}
            said: Answer = answers[verb](body) if verb in answers else (200, accepted(body))
            return said

        fake = Fake(answer)
        self.addCleanup(fake.close)
        worker = ringi.Worker(fake.client(), name="w", drain=5)
        worker.activity("a")(function)
        done: list[bool] = []
        thread = threading.Thread(target=lambda: done.append(worker.run()))
        thread.start()
        until = time.monotonic() + 10
        while time.monotonic() < until and len(self.reported(fake)) < len(tasks) and not fake.bodies("/v1/tasks/" + last):
            time.sleep(0.01)
        worker.stop()
        thread.join()
        self.assertEqual(done, [True])
        return fake

    def reported(self, fake: Fake) -> set[str]:
        return {item["run"] for verb in ("complete", "fail") for body in fake.bodies("/v1/tasks/" + verb) for item in body["items"]}

    def test_what_finishes_while_a_report_is_under_way_goes_into_the_next(self) -> None:
        under_way, most = 0, 0
        lock = threading.Lock()

        def complete(body: Any) -> Answer:
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.2)
            with lock:
                under_way -= 1
            return 200, accepted(body)

        fake = self.work([task(n) for n in range(10)], lambda t: t.input, complete=complete)
        self.assertEqual(most, 1)
        self.assertLessEqual(len(fake.bodies("/v1/tasks/complete")), 4)

    def test_a_report_asks_for_as_many_tasks_as_there_are_free_slots(self) -> None:
        first = self.work([task(1)], lambda t: t.input).bodies("/v1/tasks/complete")[0]
        self.assertEqual(first["activities"], ["a"])
        self.assertGreater(first["want"], 0)

    def test_one_item_that_is_refused_does_not_keep_its_company_from_being_heard(self) -> None:
        def complete(body: Any) -> Answer:
            if any(item["run"] == "r1" for item in body["items"]):
                return 413, {"code": "too_large", "detail": "no", "retryable": False}
            return 200, accepted(body)

        gate = threading.Barrier(3)

        def together(t: ringi.Task) -> Any:
            gate.wait(5)
            return t.input

        fake = self.work([task(n) for n in range(3)], together, complete=complete)
        (body,) = fake.bodies("/v1/tasks/fail")
        self.assertEqual([(i["run"], i["code"], i["applied"]) for i in body["items"]], [("r1", "output_too_large", "unknown")])

    def test_a_report_is_kept_while_something_in_between_refuses_it(self) -> None:
        refusals: list[Answer] = [(421, {"code": "invalid", "detail": "another host", "retryable": False}), (400, "what?"), (302, ""), (404, "")]
        fake = self.work([task(1)], lambda t: t.input, complete=lambda body: refusals.pop() if refusals else (200, accepted(body)))
        self.assertEqual(fake.bodies("/v1/tasks/fail"), [])

    def test_an_output_that_is_not_json_is_reported_as_perhaps_applied(self) -> None:
        fake = self.work([task(1)], lambda t: {"bad": object()})
        (item,) = fake.bodies("/v1/tasks/fail")[0]["items"]
        self.assertEqual((item["code"], item["retryable"], item["applied"]), ("bad_output_value", False, "unknown"))

    def test_an_item_that_may_pass_is_sent_again_unchanged(self) -> None:
        answers = [{"error": {"code": "unavailable", "message": "x", "retryable": True}}, {"outcome": "accepted"}]
        fake = self.work([task(1)], lambda t: t.input, complete=lambda body: (200, {"items": [answers.pop(0)]}))
        first, second = fake.bodies("/v1/tasks/complete")
        self.assertEqual(first["items"], second["items"])

    def test_a_function_learns_why_it_should_end(self) -> None:
        for beat, reason in (({"outcome": "stale"}, "lease_lost"), ({"outcome": "accepted", "cancel": True}, "cancelled")):
            def function(t: ringi.Task) -> None:
                t.cancel.wait(10)
                t.cancel.check()

            fake = self.work([task(1, leaseMs=300)], function, heartbeat=lambda body: (200, {"items": [beat]}))
            (item,) = fake.bodies("/v1/tasks/fail")[0]["items"]
            self.assertEqual((item["code"], item["message"].split(":")[0]), ("interrupted", reason))

    def test_a_function_that_ends_because_its_time_is_up_says_so(self) -> None:
        def function(t: ringi.Task) -> None:
            t.cancel.wait(10)
            t.cancel.check()

        (item,) = self.work([task(1, timeoutMs=100)], function).bodies("/v1/tasks/fail")[0]["items"]
        self.assertEqual((item["code"], item["retryable"], "applied" in item), ("timed_out", True, False))

    def test_a_call_without_permission_is_not_made_and_not_reported(self) -> None:
        called: list[ringi.Task] = []
        fake = self.work([task(1, begin=True)], called.append, "begin", begin=lambda body: (200, {"items": [{"outcome": "stale"}]}))
        self.assertEqual((called, self.reported(fake)), ([], set()))

    def test_whatever_a_function_raises_is_reported(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        class Half(ringi.Failure):
            def __init__(self) -> None:
                pass

        inf, huge = float("inf"), 10**400
        odd: list[tuple[BaseException, dict[str, Any]]] = [
            (Mute(), {"code": "error", "message": "Mute: (it cannot be shown)", "retryable": True}),
            (Half(), {"code": "error", "retryable": True}),
            (SystemExit(3), {"code": "error", "message": "SystemExit: 3"}),
            (KeyboardInterrupt(), {"code": "error"}),
            (ringi.Failure(404, ValueError("gone")), {"code": "404", "message": "gone"}),  # type: ignore[arg-type]
            (ringi.Failure(None, None, retryable=None), {"code": "error", "message": "", "retryable": False}),  # type: ignore[arg-type]
            (ringi.Failure("busy", Mute()), {"code": "busy", "message": "(it cannot be shown)"}),  # type: ignore[arg-type]
            (ringi.Failure("busy", retry_after="3"), {"retryAfterMs": 3000}),
            (ringi.Failure("busy", retry_after="1.5"), {"retryAfterMs": 1500}),
            (ringi.Failure("busy", retry_after=None), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after="soon"), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after=""), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after="-5"), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after=-5), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after=timedelta(seconds=2)), {"retryAfterMs": 2000}),
            (ringi.Failure("busy", retry_after=timedelta.max), {"retryAfterMs": 86_400_000}),
            (ringi.Failure("busy", retry_after=datetime.max.replace(tzinfo=timezone.utc)), {"retryAfterMs": 86_400_000}),
            (ringi.Failure("busy", retry_after=datetime.max), {"retryAfterMs": 86_400_000}),
            (ringi.Failure("busy", retry_after="Fri, 31 Dec 2100 23:59:59 GMT"), {"retryAfterMs": 86_400_000}),
            (ringi.Failure("busy", retry_after="Sun, 06 Nov 1994 08:49:37 GMT"), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after="Sun, 99 Nov 1994 08:49:37 GMT"), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after=[3]), {"retryAfterMs": None}),  # type: ignore[arg-type]
            (ringi.Failure("busy", retry_after=inf), {"retryAfterMs": 86_400_000}),
            (ringi.Failure("busy", retry_after=inf - inf), {"retryAfterMs": None}),
            (ringi.Failure("busy", retry_after=huge), {"retryAfterMs": None}),
        ]

        def function(t: ringi.Task) -> None:
            raise odd[int(t.run[1:])][0]

        with self.assertLogs("ringi"):
            fake = self.work([task(n) for n in range(len(odd))], function)
        items = {int(item["run"][1:]): item for body in fake.bodies("/v1/tasks/fail") for item in body["items"]}
        for n, (error, want) in enumerate(odd):
            self.assertEqual({name: items[n].get(name) for name in want}, want, type(error).__name__)

    def test_queues_have_slots_and_functions_of_their_own(self) -> None:
        """A queue that is full holds up none of the others, and each report asks
        for tasks of its own queue only."""
        left = {"default": [task(n) for n in range(3)], "money": [task(n + 10, activity="b", queue="money") for n in range(3)]}
        lock, gate, done = threading.Lock(), threading.Event(), threading.Event()
        most: dict[str, int] = {}

        def take(queue: str, limit: int) -> list[Any]:
            with lock:
                most[queue] = max(most.get(queue, 0), limit)
                came, left[queue][:] = left[queue][:limit], left[queue][limit:]
            return came

        def answer(path: str, body: Any) -> Answer:
            if path.endswith("/poll"):
                came = take(body["queue"], body["max"])
                if not came:
                    time.sleep(0.02)
                return 200, {"tasks": came}
            came = take(body["queue"], body["want"]) if "want" in body else []
            return 200, {**accepted(body), "tasks": came}

        fake = Fake(answer)
        self.addCleanup(fake.close)
        worker = ringi.Worker(fake.client(), name="w", concurrency=1, drain=5)
        money = worker.serve("money", concurrency=2)
        worker.activity("a")(lambda t: gate.wait(10))
        seen: list[int] = []

        @money.activity("b")
        def b(t: ringi.Task) -> object:
            with lock:
                seen.append(t.input)
                if len(seen) == 3:
                    done.set()
            return t.input

        thread = threading.Thread(target=worker.run)
        thread.start()
        self.assertTrue(done.wait(10), "a full queue held up the other")
        gate.set()
        until = time.monotonic() + 10
        while time.monotonic() < until and len(self.reported(fake)) < 6:
            time.sleep(0.01)
        worker.stop()
        thread.join()
        self.assertEqual((len(self.reported(fake)), most), (6, {"default": 1, "money": 2}))
        for path, body in fake.asked:
            if "queue" in body:
                self.assertEqual(body["activities"], ["a"] if body["queue"] == "default" else ["b"])

    def test_a_worker_of_queues_that_cannot_work_says_so(self) -> None:
        fake = Fake(lambda path, body: (200, {"tasks": []}))
        self.addCleanup(fake.close)
        worker = ringi.Worker(fake.client())
        worker.serve("money").activity("b")(lambda t: None)
        for queue, slots in (("money", 1), ("default", 1), ("x", 0)):
            with self.assertRaises(ValueError):
                worker.serve(queue, concurrency=slots)
        worker.serve("empty")
        with self.assertRaisesRegex(ValueError, "'empty' has no activities"):
            worker.run()

    def test_an_async_function_is_refused_before_it_has_tasks(self) -> None:
        async def function(t: ringi.Task) -> None:
            pass

        with self.assertRaisesRegex(TypeError, "async"):
            ringi.Worker(ringi.Client(server="http://127.0.0.1:1", key="k"), name="w").activity("a")(function)

    def test_the_message_of_a_failure_is_what_the_server_takes(self) -> None:
        def function(t: ringi.Task) -> None:
            raise ringi.Failure("c\0" * 300, "\ud800" + "é" * 4000)

        (item,) = self.work([task(1)], function).bodies("/v1/tasks/fail")[0]["items"]
        self.assertEqual(item["code"], "c" * 256)
        self.assertLessEqual(len(item["message"].encode()), 4000)


if __name__ == "__main__":
    unittest.main()
