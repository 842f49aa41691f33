import unittest
from decimal import Decimal

from ringi import exact


class Exact(unittest.TestCase):
    def test_no_digit_is_lost_on_the_way_there_and_back(self) -> None:
        for text in ("9007199254740993", "0.10", "-0.30000000000000000000000000000001", "1E+400", "[1,2.50,{\"a\":-7}]"):
            self.assertEqual(exact.dumps(exact.loads(text)), text)

    def test_whole_numbers_are_int_and_others_decimal(self) -> None:
        self.assertEqual(exact.loads("[9007199254740993,0.10]"), [9007199254740993, Decimal("0.10")])

    def test_text_of_every_script_survives(self) -> None:
        for text in ("é日本🦊\n\"\\ ", "\u2028", "\x01"):
            self.assertEqual(exact.loads(exact.dumps({text: text})), {text: text})

    def test_what_json_cannot_hold_is_refused(self) -> None:
        for value in (float("nan"), Decimal("Infinity"), {1: 2}, object(), b"x", {"a": {1, 2}}):
            with self.assertRaises((TypeError, ValueError), msg=repr(value)):
                exact.dumps(value)
        with self.assertRaises(ValueError):
            exact.loads("NaN")

    def test_the_rest_is_json(self) -> None:
        self.assertEqual(exact.dumps([None, True, False, (), {}, "x", 1.5]), '[null,true,false,[],{},"x",1.5]')


if __name__ == "__main__":
    unittest.main()
