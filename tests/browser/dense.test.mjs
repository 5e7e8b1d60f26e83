// The pure functions of the pages' scripts. `tests/browser/test_scripts.py` runs this with node.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const load = (name) => {
  const text = readFileSync(new URL(`../../controller/argosy/figures/static/${name}`, import.meta.url));
  return import(`data:text/javascript;base64,${text.toString("base64")}`);
};
const dense = await load("dense.js");
const live = await load("live.js");

test("a column is decoded as it was stored", () => {
  const data = Buffer.from(new Uint32Array([1, 70000]).buffer).toString("base64");
  assert.deepEqual([...dense.decode({ dtype: "<u4", data })], [1, 70000]);
});

test("viridis runs from dark to bright and stays inside", () => {
  assert.deepEqual(dense.viridis(-1), [68, 1, 84]);
  assert.deepEqual(dense.viridis(2), [253, 231, 37]);
  const sums = Array.from({ length: 11 }, (_, at) => dense.viridis(at / 10).reduce((a, b) => a + b));
  assert.deepEqual(sums, [...sums].sort((a, b) => a - b));
});

test("durations read like those of the command", () => {
  assert.deepEqual([3.21, 59, 65, 7260].map(dense.duration), ["3.2 s", "59 s", "1m 05s", "2h 01m"]);
});

test("ticks are round, inside, and not too many", () => {
  for (const [low, high] of [[0, 7], [3, 100], [0, 90000], [1000, 1010], [0, 3e6]]) {
    const found = dense.ticks(low, high, 8);
    assert.ok(found.length >= 1 && found.length <= 9);
    assert.ok(found.every((each) => each >= low && each <= high));
  }
});

test("rows are numbered at equal distances, and the first one always is", () => {
  for (const [low, high] of [[0, 3], [0, 11], [2.5, 12.5], [0, 5000]]) {
    const found = dense.laneTicks(low, high), gaps = found.slice(1).map((each, at) => each - found[at]);
    assert.ok(found[0] === Math.floor(low) && found.length <= 4 && found.every((each) => each < high));
    assert.equal(new Set(gaps).size, high - low > 8 ? 1 : 0);
  }
});

test("attempts of one lane that overlap take rows of their own, and no others", () => {
  const attempts = { lane: [0, 0, 0, 1], start: [0, 5, 10, 0], stop: [10, 15, 20, 5] };
  const { slot, depth } = dense.slots(attempts, 2);
  assert.deepEqual([...slot], [0, 1, 0, 0]);
  assert.deepEqual([...depth], [2, 1]);
});

test("what works on an instance is named by run, with its GPUs, and long lists end", () => {
  const work = { first: [0, 3, 3], run: [0, 1, 0], index: [3, 4, 17], gpus: [0, 0, 5] };
  assert.equal(dense.workOn(0, work, ["a-1", "b-2"]), "a-1: 3, 17 (GPU 0, 2); b-2: 4");
  assert.equal(dense.workOn(1, work, ["a-1", "b-2"]), "");
  const many = { first: [0, 100], run: new Uint8Array(100), index: Uint32Array.from({ length: 100 }, (_, at) => at) };
  assert.match(dense.workOn(0, many, ["a-1"]), /38, 39 and 60 others$/);
});

test("a raster holds every second of every attempt in view once", () => {
  const attempts = { lane: [0, 1, 2, 3], start: [0, 2.5, 10, 90], stop: [10, 7.5, 20, 110], outcome: [1, 2, 4, 1] };
  const sums = dense.raster(attempts, { t0: 0, t1: 100, l0: 0, l1: 4 }, 50, 4);
  const total = sums.reduce((a, b) => a + b);
  assert.ok(Math.abs(total - (10 + 5 + 10 + 10)) < 1e-3, String(total));
  assert.ok(Math.abs(sums[(1 * 50 + 1) * 5 + 1] - 1.5) < 1e-5);  // lane 1, the pixel of 2 to 4 s, failed: 2.5 to 4
});

test("a lane higher than a pixel fills all of its rows", () => {
  const sums = dense.raster({ lane: [1], start: [0], stop: [10], outcome: [1] }, { t0: 0, t1: 10, l0: 0, l1: 2 }, 1, 6);
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((y) => Math.round(sums[y * 5])), [0, 0, 0, 10, 10, 10]);
});

test("what is pointed at is the attempt of that moment, lane and slot", () => {
  const attempts = { lane: [0, 1, 1, 2], start: [0, 0, 5, 0], stop: [9, 9, 9, 9], slot: [0, 0, 1, 0] };
  assert.equal(dense.attemptAt(attempts, 1, 0, 6, 0), 1);
  assert.equal(dense.attemptAt(attempts, 1, 1, 6, 0), 2);
  assert.equal(dense.attemptAt(attempts, 1, 0, 20, 0), -1);
  assert.equal(dense.attemptAt(attempts, 7, 0, 6, 0), -1);
});

test("squares of instances do not lie on each other", () => {
  const count = 500, type = Array.from({ length: count }, (_, at) => at % 3), zone = Array.from({ length: count }, (_, at) => at % 2);
  const { x, y, side } = dense.blocks(type, zone, 3, 2, 900, 500);
  const places = new Set(Array.from(x, (left, at) => `${left},${y[at]}`));
  assert.equal(places.size, count);
  assert.ok(side >= 4);
  assert.ok(Math.max(...x) + side <= 900);
});

test("the page asks less often after failures, and never less than once a minute", () => {
  assert.deepEqual([0, 1, 2, 50].map((failures) => live.pause(3000, failures)), [3000, 6000, 12000, 60000]);
});

test("an axis of hours has round times of this machine's clock at the same places", () => {
  process.env.TZ = "Asia/Kolkata";  // half an hour off
  const begun = Date.UTC(2026, 10, 21, 6, 26, 33) / 1000;  // 11:56:33 there
  assert.deepEqual(dense.clockTicks(begun, 0, 3600, 4).map(([at, text]) => [Math.round(at), text]), [[207, "12:00"], [1107, "12:15"], [2007, "12:30"], [2907, "12:45"]]);
  assert.deepEqual(dense.clockTicks(begun, 0, 30, 2).map((each) => each[1]), ["11:56:45", "11:57:00"]);
});

test("a view is saved once under its name, and forgotten", () => {
  const views = live.withView(live.withView([["a", "x=1"]], "b", ""), "a", "x=2");
  assert.deepEqual(views, [["b", ""], ["a", "x=2"]]);
  assert.deepEqual(live.withView(views, "b", null), [["a", "x=2"]]);
});
