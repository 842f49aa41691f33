import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import test from "node:test";

import { Client, RingiError } from "../dist/index.js";
import { inOrder, serve } from "./fake.mjs";

const view = { run: "r", seq: 1, status: "running" };

function problem(status, code, retryable) {
  return [status, { status, code, detail: "what happened", hint: "do this", retryable }];
}

test("an error carries code, hint and whether it may pass", async (t) => {
  const fake = await serve(t, inOrder(problem(409, "start_key_conflict", false)));
  const error = await fake.client().start("d", null, { key: "k" }).catch((e) => e);
  assert.ok(error instanceof RingiError);
  assert.deepEqual([error.code, error.hint, error.retryable, error.status], ["start_key_conflict", "do this", false, 409]);
  assert.equal(String(error), "start_key_conflict: what happened (do this)");
});

test("an answer of something in between has a code too", async (t) => {
  const fake = await serve(t, inOrder([502, "bad gateway"]));
  await assert.rejects(fake.client(0).show("r"), { code: "unavailable", retryable: true });
});

test("a request is repeated until it is answered", async (t) => {
  const fake = await serve(t, inOrder(undefined, problem(503, "unavailable", true), [201, { run: "r", created: true }]));
  assert.equal((await fake.client().start("d", { n: 1 }, { key: "k" })).run, "r");
  assert.deepEqual(fake.bodies("/v1/runs"), Array(3).fill({ definition: "d", input: { n: 1 }, key: "k" }));
});

test("a start without key is not repeated when its answer got lost", async (t) => {
  const fake = await serve(t, inOrder(undefined));
  await assert.rejects(fake.client().start("d"), { code: "unavailable" });
  assert.equal(fake.asked.length, 1);
});

test("a server that cannot be reached has not seen the request", async () => {
  const server = http.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  const error = await new Client({ server: `http://127.0.0.1:${port}`, key: "", patienceMs: 0 }).show("r").catch((e) => e);
  assert.deepEqual([error.code, error.sent], ["unavailable", false]);
});

test("an event has the same id in every repetition", async (t) => {
  const fake = await serve(t, inOrder(undefined, [200, { id: "x", outcome: "accepted" }]));
  await fake.client().sendEvent("paid", { n: 1 }, { key: "o-1", keepMs: 1500 });
  const [first, second] = fake.bodies("/v1/events");
  assert.deepEqual(first, second);
  assert.deepEqual([typeof first.id, first.key, first.keepMs], ["string", "o-1", 1500]);
});

test("watch shows each change until the end", async (t) => {
  const views = [view, view, { ...view, seq: 2 }, { ...view, seq: 5, status: "completed" }];
  const fake = await serve(t, inOrder(...views.map((v) => [200, v])));
  const seen = [];
  for await (const { seq } of fake.client().watch("r")) seen.push(seq);
  assert.deepEqual(seen, [1, 2, 5]);
});

test("wait gives up in time", async (t) => {
  const fake = await serve(t, () => [200, view]);
  await assert.rejects(fake.client().wait("r", { timeoutMs: 100 }), /run r has not ended/);
});

test("the name of a run stays one part of the path", async (t) => {
  const fake = await serve(t, inOrder([200, { outcome: "accepted" }]));
  await fake.client().cancel("a/b c", "wrong order");
  assert.deepEqual(fake.asked, [["/v1/runs/a%2Fb%20c/cancel", { reason: "wrong order" }]]);
});

test("of several servers the next is asked while one is away", async (t) => {
  const away = http.createServer().listen(0, "127.0.0.1");
  await once(away, "listening");
  const gone = `http://127.0.0.1:${away.address().port}`;
  await new Promise((done) => away.close(done));
  const ill = await serve(t, inOrder(problem(503, "unavailable", true)));
  const well = await serve(t, inOrder([200, view], [200, view]));
  const client = new Client({ server: `${gone}, ${ill.address},${well.address}/`, key: "key", patienceMs: 5_000 });
  await client.show("r");
  await client.show("r");
  assert.deepEqual([ill.asked.length, well.asked.length], [1, 2]);
});

test("an address that can never work is refused at once", () => {
  for (const server of ["127.0.0.1:7070", "ftp://x", "http://"]) assert.throws(() => new Client({ server, key: "" }), TypeError);
});
