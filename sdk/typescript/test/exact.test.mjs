import assert from "node:assert/strict";
import test from "node:test";

import { Decimal, parse, stringify } from "../dist/index.js";

test("no digit is lost on the way there and back", () => {
  for (const text of [
    "9007199254740993", "-9007199254740993", "0.1", "-0.30000000000000000000000000000001", "1E+400", "1e-400", "12345678901234567890.5",
    '[1,2.5,{"a":-7,"9007199254740993":"9007199254740993"}]', '{"a\\"":"\\\\","b":9007199254740993}', '{"__proto__":9007199254740993}',
  ]) {
    assert.equal(stringify(parse(text)), text);
  }
});

test("a number stays one if it is the same number", () => {
  assert.deepEqual(parse("[1200,0.10,99.95,1e3,1.0,-0.0001,100000000000000000000,9007199254740992]"), [
    1200, 0.1, 99.95, 1000, 1, -0.0001, 100000000000000000000, 9007199254740992,
  ]);
});

test("a number that would be rounded is a bigint or a Decimal", () => {
  assert.equal(parse("9007199254740993"), 9007199254740993n);
  assert.deepEqual(parse("0.30000000000000000000000000000001"), new Decimal("0.30000000000000000000000000000001"));
  assert.deepEqual(parse("1e400"), new Decimal("1e400"));
});

test("text of every script survives, also what looks like a number", () => {
  for (const text of ['é日本🦊\n"\\ ', "\u2028", "\u0001", '\\"9007199254740993']) {
    assert.deepEqual(parse(stringify({ [text]: text, n: 9007199254740993n })), { [text]: text, n: 9007199254740993n });
  }
});

test("what JSON cannot hold is refused", () => {
  for (const value of [NaN, { a: -Infinity }, [0 / 0]]) assert.throws(() => stringify(value), TypeError);
  for (const text of ["NaN", "01", "[1,]", '"', "9007199254740993 x", ""]) assert.throws(() => parse(text), SyntaxError);
  for (const text of ["", "1.", "01", "NaN", "1 "]) assert.throws(() => new Decimal(text), TypeError);
});

test("the rest is written as JSON.stringify does", () => {
  for (const value of [[null, true, {}, [], "x", 1.5, undefined], { a: undefined, b: new Date(0) }]) {
    assert.equal(stringify(value), JSON.stringify(value));
  }
  assert.equal(stringify(undefined), "null");
});
