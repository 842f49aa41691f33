// The rules that a real server cannot be made to show; sdk/conformance has the rest.

import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Failure, Worker } from "../dist/index.js";
import { accepted, serve, task } from "./fake.mjs";

/** Lets a worker do tasks, with what the server answers to each verb, until all were reported, or the verb last was asked. */
async function work(t, tasks, activity, { last = "", ...answers } = {}) {
  const left = [...tasks];
  const fake = await serve(t, async (path, body) => {
    const verb = path.slice("/v1/tasks/".length);
    if (verb !== "poll") return answers[verb] ? answers[verb](body) : accepted(body);
    const came = left.splice(0, body.max);
    if (came.length === 0) await sleep(20);
    return [200, { tasks: came }];
  });
  const worker = new Worker({ client: fake.client(), name: "w", drainMs: 5_000, activities: { a: activity }, log: () => {} });
  const done = worker.run();
  const end = performance.now() + 10_000;
  while (performance.now() < end && reported(fake).size < tasks.length && fake.bodies(`/v1/tasks/${last}`).length === 0) await sleep(5);
  worker.stop();
  assert.equal(await done, true);
  return fake;
}

function reported(fake) {
  return new Set(["complete", "fail"].flatMap((verb) => fake.bodies(`/v1/tasks/${verb}`).flatMap((body) => (body.items ?? []).map((item) => item.run))));
}

function firstFailure(fake) {
  return fake.bodies("/v1/tasks/fail")[0].items[0];
}

test("what finishes while a report is under way goes into the next", async (t) => {
  let underWay = 0;
  let most = 0;
  const complete = async (body) => {
    most = Math.max(most, ++underWay);
    await sleep(200);
    underWay--;
    return accepted(body);
  };
  const fake = await work(t, Array.from({ length: 10 }, (_, n) => task(n)), ({ input }) => input, { complete });
  assert.equal(most, 1);
  assert.ok(fake.bodies("/v1/tasks/complete").length <= 4);
});

test("a report asks for as many tasks as there are free slots", async (t) => {
  const [first] = (await work(t, [task(1)], ({ input }) => input)).bodies("/v1/tasks/complete");
  assert.deepEqual(first.activities, ["a"]);
  assert.ok(first.want > 0);
});

test("one item that is refused does not keep its company from being heard", async (t) => {
  const complete = (body) => (body.items.some(({ run }) => run === "r1") ? [413, { code: "too_large", detail: "no", retryable: false }] : accepted(body));
  const fake = await work(t, [0, 1, 2].map((n) => task(n)), async () => sleep(50), { complete });
  assert.equal(fake.bodies("/v1/tasks/fail").length, 1);
  const { run, code, applied } = firstFailure(fake);
  assert.deepEqual([run, code, applied], ["r1", "output_too_large", "unknown"]);
});

test("a report is kept while something in between refuses it", async (t) => {
  const refusals = [[421, { code: "invalid", detail: "another host", retryable: false }], [400, "what?"], [302, ""], [404, ""]];
  // The fetch of Node 18 repeats what was answered with 421 by itself, without the body.
  const complete = (body) => refusals.pop() ?? (body ? accepted(body) : undefined);
  const fake = await work(t, [task(1)], ({ input }) => input, { complete });
  assert.deepEqual(fake.bodies("/v1/tasks/fail"), []);
});

test("an output that is not JSON is reported as perhaps applied", async (t) => {
  const { code, retryable, applied } = firstFailure(await work(t, [task(1)], () => ({ bad: NaN })));
  assert.deepEqual([code, retryable, applied], ["bad_output_value", false, "unknown"]);
});

test("an item that may pass is sent again unchanged", async (t) => {
  const answers = [{ error: { code: "unavailable", message: "x", retryable: true } }, { outcome: "accepted" }];
  const fake = await work(t, [task(1)], ({ input }) => input, { complete: () => [200, { items: [answers.shift()] }] });
  const [first, second] = fake.bodies("/v1/tasks/complete");
  assert.deepEqual(first.items, second.items);
});

/** A function that ends when it is told to. */
function obedient({ signal }) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

test("a function learns why it should end", async (t) => {
  for (const [beat, reason] of [[{ outcome: "stale" }, "lease_lost"], [{ outcome: "accepted", cancel: true }, "cancelled"]]) {
    const { code, message } = firstFailure(await work(t, [task(1, { leaseMs: 300 })], obedient, { heartbeat: () => [200, { items: [beat] }] }));
    assert.deepEqual([code, message.split(":")[0]], ["interrupted", reason]);
  }
});

test("a function that ends because its time is up says so", async (t) => {
  const item = firstFailure(await work(t, [task(1, { timeoutMs: 100 })], obedient));
  assert.deepEqual([item.code, item.retryable, "applied" in item], ["timed_out", true, false]);
});

test("a time-out longer than a timer can wait is not over at once", async (t) => {
  let aborted;
  await work(t, [task(1, { timeoutMs: 2 ** 33 })], async ({ signal }) => {
    await sleep(50);
    aborted = signal.aborted;
  });
  assert.equal(aborted, false);
});

test("a call without permission is not made and not reported", async (t) => {
  const called = [];
  const fake = await work(t, [task(1, { begin: true })], (task) => called.push(task), {
    last: "begin", begin: () => [200, { items: [{ outcome: "stale" }] }],
  });
  assert.deepEqual([called, reported(fake).size], [[], 0]);
});

test("whatever a function throws is reported", async (t) => {
  const mute = { toString() { throw new Error("no text"); } };
  const odd = [
    [undefined, { code: "error", message: "undefined", retryable: true }],
    [null, { code: "error", message: "null" }],
    [Symbol("s"), { code: "error", message: "Symbol(s)" }],
    [Object.create(null), { code: "error", message: "(it cannot be shown)" }],
    [mute, { code: "error", message: "(it cannot be shown)" }],
    [new Failure(404, new Error("gone")), { code: "404", message: "Error: gone", retryable: false }],
    [new Failure(undefined, null, { retryable: null }), { code: "error", retryable: false, applied: undefined }],
    [new Failure(Symbol("s"), "x", { retryable: "yes", applied: "maybe" }), { code: "Symbol(s)", retryable: true, applied: "unknown" }],
    [new Failure("busy", "", { retryAfterMs: Infinity }), { code: "busy", retryAfterMs: 86_400_000 }],
    [new Failure("busy", "", { retryAfterMs: NaN }), { code: "busy", retryAfterMs: undefined }],
    [new Failure("busy", "", { retryAfterMs: "3000" }), { code: "busy", retryAfterMs: 3000 }],
    [new Failure("busy", "", { retryAfterMs: 3000n }), { code: "busy", retryAfterMs: 3000 }],
    [new Failure("busy", "", { retryAfterMs: Symbol("s") }), { code: "busy", retryAfterMs: undefined }],
    [new Failure("busy", "", { retryAfterMs: -5 }), { code: "busy", retryAfterMs: undefined }],
    [new Failure("busy", "", { retryAfter: "3" }), { code: "busy", retryAfterMs: 3000 }],
    [new Failure("busy", "", { retryAfter: null }), { code: "busy", retryAfterMs: undefined }],
    [new Failure("busy", "", { retryAfter: "soon" }), { code: "busy", retryAfterMs: undefined }],
    [new Failure("busy", "", { retryAfter: 5 }), { code: "busy", retryAfterMs: undefined }],
    [new Failure("busy", "", { retryAfter: "Fri, 31 Dec 2100 23:59:59 GMT" }), { code: "busy", retryAfterMs: 86_400_000 }],
    [new Failure("busy", "", { retryAfter: "Sun, 06 Nov 1994 08:49:37 GMT" }), { code: "busy", retryAfterMs: undefined }],
    [new Failure("busy", "", { retryAfter: new Date(8.64e15) }), { code: "busy", retryAfterMs: 86_400_000 }],
    [new Failure("busy", "", { retryAfter: new Date(NaN) }), { code: "busy", retryAfterMs: undefined }],
  ];
  const tasks = odd.map((_, n) => task(n));
  const fake = await work(t, tasks, ({ run }) => { throw odd[Number(run.slice(1))][0]; });
  const items = new Map(fake.bodies("/v1/tasks/fail").flatMap((body) => body.items).map((item) => [Number(item.run.slice(1)), item]));
  for (const [n, [, want]] of odd.entries()) {
    assert.deepEqual(Object.fromEntries(Object.keys(want).map((name) => [name, items.get(n)[name]])), want, `the one with the number ${n}`);
  }
});

test("the message of a failure is what the server takes", async (t) => {
  const activity = () => {
    throw new Failure("c\0".repeat(300), "\ud800" + "é".repeat(4000));
  };
  const { code, message } = firstFailure(await work(t, [task(1)], activity));
  assert.equal(code, "c".repeat(256));
  assert.ok(new TextEncoder().encode(message).length <= 4000);
});

test("queues have slots and functions of their own", async (t) => {
  const left = { default: [0, 1, 2].map((n) => task(n)), money: [10, 11, 12].map((n) => task(n, { activity: "b", queue: "money" })) };
  const most = {};
  const take = (queue, limit) => {
    most[queue] = Math.max(most[queue] ?? 0, limit);
    return left[queue].splice(0, limit);
  };
  const fake = await serve(t, async (path, body) => {
    if (path === "/v1/tasks/poll") {
      const tasks = take(body.queue, body.max);
      if (tasks.length === 0) await sleep(20);
      return [200, { tasks }];
    }
    const [status, answer] = accepted(body);
    return [status, { ...answer, tasks: body.want ? take(body.queue, body.want) : [] }];
  });
  let open;
  const gate = new Promise((resolve) => (open = resolve));
  let seen = 0;
  const worker = new Worker({
    client: fake.client(), name: "w", drainMs: 5_000, log: () => {}, concurrency: 1, activities: { a: () => gate },
    queues: { money: { concurrency: 2, activities: { b: () => ++seen } } },
  });
  const done = worker.run();
  const end = performance.now() + 10_000;
  while (performance.now() < end && seen < 3) await sleep(5);
  assert.equal(seen, 3, "a full queue held up the other");
  open(null);
  while (performance.now() < end && reported(fake).size < 6) await sleep(5);
  worker.stop();
  assert.equal(await done, true);
  assert.deepEqual([reported(fake).size, most], [6, { default: 1, money: 2 }]);
  for (const [, body] of fake.asked ?? []) {
    if (body?.queue) assert.deepEqual(body.activities, body.queue === "default" ? ["a"] : ["b"]);
  }
});

test("a worker of queues that cannot work is not made", () => {
  const a = () => null;
  for (const wrong of [
    {}, { activities: {} }, { queues: { money: { activities: {} } } }, { activities: { a }, queues: { default: { activities: { a } } } },
    { queues: { money: { concurrency: 0, activities: { a } } } },
  ]) {
    assert.throws(() => new Worker(wrong), TypeError, JSON.stringify(wrong));
  }
  new Worker({ queues: { money: { activities: { a } } } });
});
