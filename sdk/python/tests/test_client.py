import unittest

import ringi
from fake import Answer, Fake

VIEW = {"run": "r", "seq": 1, "status": "running"}


def problem(status: int, code: str, retryable: bool) -> Answer:
    return status, {"status": status, "code": code, "detail": "what happened", "hint": "do this", "retryable": retryable}


class Client(unittest.TestCase):
    def serve(self, *answers: Answer) -> Fake:
        left = list(answers)
        fake = Fake(lambda path, body: left.pop(0))
        self.addCleanup(fake.close)
        return fake

    def test_an_error_carries_code_hint_and_whether_it_may_pass(self) -> None:
        fake = self.serve(problem(409, "start_key_conflict", False))
        with self.assertRaises(ringi.RingiError) as caught:
            fake.client().start("d", key="k")
        error = caught.exception
        self.assertEqual((error.code, error.hint, error.retryable, error.status), ("start_key_conflict", "do this", False, 409))
        self.assertEqual(str(error), "start_key_conflict: what happened (do this)")

    def test_an_answer_of_something_in_between_has_a_code_too(self) -> None:
        fake = self.serve((502, "bad gateway"))
        with self.assertRaises(ringi.RingiError) as caught:
            fake.client(patience=0).show("r")
        self.assertEqual((caught.exception.code, caught.exception.retryable), ("unavailable", True))

    def test_a_request_is_repeated_until_it_is_answered(self) -> None:
        fake = self.serve(None, problem(503, "unavailable", True), (201, {"run": "r", "created": True}))
        self.assertEqual(fake.client().start("d", {"n": 1}, key="k")["run"], "r")
        self.assertEqual(fake.bodies("/v1/runs"), [{"definition": "d", "input": {"n": 1}, "key": "k"}] * 3)

    def test_a_start_without_key_is_not_repeated_when_its_answer_got_lost(self) -> None:
        fake = self.serve(None)
        with self.assertRaises(ringi.RingiError):
            fake.client().start("d")
        self.assertEqual(len(fake.asked), 1)

    def test_an_event_has_the_same_id_in_every_repetition(self) -> None:
        fake = self.serve(None, (200, {"id": "x", "outcome": "accepted"}))
        fake.client().send_event("paid", "o-1", {"n": 1}, keep=1.5)
        first, second = fake.bodies("/v1/events")
        self.assertEqual(first, second)
        self.assertTrue(first["id"])
        self.assertEqual(first["keepMs"], 1500)

    def test_watch_shows_each_change_until_the_end(self) -> None:
        views = [VIEW, VIEW, {**VIEW, "seq": 2}, {**VIEW, "seq": 5, "status": "completed"}]
        fake = self.serve(*((200, v) for v in views))
        self.assertEqual([v["seq"] for v in fake.client().watch("r")], [1, 2, 5])

    def test_wait_gives_up_in_time(self) -> None:
        fake = Fake(lambda path, body: (200, VIEW))
        self.addCleanup(fake.close)
        with self.assertRaisesRegex(TimeoutError, "run r has not ended"):
            fake.client().wait("r", timeout=0.1)

    def test_the_name_of_a_run_stays_one_part_of_the_path(self) -> None:
        fake = self.serve((200, {"outcome": "accepted"}))
        fake.client().cancel("a/b c", "wrong order")
        self.assertEqual(fake.asked, [("/v1/runs/a%2Fb%20c/cancel", {"reason": "wrong order"})])

    def test_of_several_servers_the_next_is_asked_while_one_is_away(self) -> None:
        away, ill = self.serve(), self.serve(problem(503, "unavailable", True))
        well = self.serve((200, VIEW), (200, VIEW))
        address = [f"http://127.0.0.1:{fake.http.server_address[1]}" for fake in (away, ill, well)]
        away.http.server_close()
        client = ringi.Client(", ".join(address), "key", patience=5)
        self.addCleanup(client.close)
        client.show("r")
        client.show("r")
        self.assertEqual([len(fake.asked) for fake in (ill, well)], [1, 2])

    def test_an_answer_may_hold_what_python_reads_only_when_asked_to(self) -> None:
        fake = self.serve((200, {**VIEW, "output": ringi.exact.Encoded("9" * 5000)}))
        self.assertEqual(str(fake.client().show("r")["output"]), "9" * 5000)

    def test_an_address_that_can_never_work_is_refused_at_once(self) -> None:
        for server in ("127.0.0.1:7070", "ftp://x", "http://"):
            with self.assertRaises(ValueError):
                ringi.Client(server)


if __name__ == "__main__":
    unittest.main()
