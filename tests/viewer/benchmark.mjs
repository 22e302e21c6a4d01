// Measures how long the page of a large plan takes to open, and how long its frames take. Nothing is decided by these times.
//   tests/viewer/run benchmark <chorale> <source> <packages> [--operations 1000000]
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chorale, folder, open, options, start } from "./browser.mjs";

const wanted = Number(options.operations ?? 1000000);
// A ring of n ranks with 4 instances has about 26 operations of a million for each pair of ranks.
const ranks = Math.max(2, Math.min(1024, Math.round(Math.sqrt(wanted / 20))));
const plan = join(folder, "large.cbor");
const path = join(folder, "large.html");
const seconds = async (work) => {
  const begin = performance.now();
  const result = await work();
  return [((performance.now() - begin) / 1000).toFixed(2), result];
};
const [compiled] = await seconds(() => chorale("compile", "allgather_ring", "--set", `ranks=${ranks}`, "-o", plan));
const [written] = await seconds(() => chorale("view", plan, "--allow", "proofs", "-o", path));
console.log(`plan: allgather_ring of ${ranks} ranks, compiled in ${compiled} s`);
console.log(`page: ${(statSync(path).size / 1e6).toFixed(1)} MB, written in ${written} s`);

// The same number of operations in few rows is harder to draw, because a pixel then has thousands of them.
const trace = join(folder, "trace.json");
const few = join(folder, "few.html");
const rows = 16;
const events = [];
for (let row = 0; row < rows; ++row) {
  for (let k = 0, ts = 0; k < wanted / rows; ++k) {
    const dur = 1 + ((k * 7919 + row * 31) % 13) / 4;
    const name = ["put", "signal", "wait"][k % 3];
    events.push(`{"ph":"X","name":"${name}","pid":${row >> 2},"tid":${row & 3},"ts":${ts},"dur":${dur},"args":{"plan":"p","launch":1,"op":${k},"line":"p.cpp:${k % 90}"}}`);
    ts += dur;
  }
}
writeFileSync(trace, `{"displayTimeUnit":"ns","traceEvents":[\n${events.join(",\n")}\n]}\n`);
const [fewWritten] = await seconds(() => chorale("view", trace, "-o", few));
console.log(`page of a trace: ${(statSync(few).size / 1e6).toFixed(1)} MB, written in ${fewWritten} s`);

const { browser, stop } = await start();
await (await browser.newPage()).goto("about:blank");

/** Moves the picture in every frame, and returns the time between frames and the time to draw one. */
const frames = (page, zoom) =>
  page.evaluate(async (factor) => {
    const view = window.choraleView;
    view.fit();
    if (factor > 1) view.zoomBy(factor);
    const next = () => new Promise((done) => requestAnimationFrame(done));
    for (let k = 0; k < 5; ++k) await next();
    view.drawTimes().length = 0;
    const times = [];
    let before = await next();
    for (let k = 0; k < 120; ++k) {
      view.panBy(k % 40 < 20 ? 0.02 : -0.02);
      const now = await next();
      times.push(now - before);
      before = now;
    }
    const sorted = (list) => [...list].sort((a, b) => a - b);
    const at = (list, part) => sorted(list)[Math.floor((list.length - 1) * part)].toFixed(1);
    return { between: [at(times, 0.5), at(times, 0.95)], draw: [at(view.drawTimes(), 0.5), at(view.drawTimes(), 0.95)] };
  }, zoom);

async function measure(file) {
  const [opened, { page }] = await seconds(() => open(browser, file));
  const inside = await page.evaluate(() => document.body.dataset.ready);
  const heap = await page.evaluate(() => Math.round(performance.memory.usedJSHeapSize / 1e6));
  const operations = await page.evaluate(() => window.choraleView.count(0));
  console.log(`${operations.toLocaleString("en")} operations: opened in ${opened} s, of which the page's program takes ${inside} ms; ${heap} MB of objects`);
  for (const zoom of [1, 2, 30, 1000, 30000]) {
    const { between, draw } = await frames(page, zoom);
    console.log(`zoom ${zoom}: ${between[0]} ms between frames (95 %: ${between[1]}), ${draw[0]} ms to draw one (95 %: ${draw[1]})`);
  }
  return page;
}

await (await measure(few)).close();
const page = await measure(path);
const [searched] = await seconds(async () => {
  await page.keyboard.press("/");
  await page.keyboard.type("put output");
  await page.waitForFunction(() => /match/.test(document.getElementById("found").textContent), { timeout: 120000 });
});
console.log(`search: ${await page.$eval("#found", (at) => at.textContent)} in ${searched} s`);
const [flowed] = await seconds(async () => {
  await page.click("#tab-flow");
  await page.waitForSelector("#flow canvas");
});
console.log(`flow: opened in ${flowed} s`);
await stop();
