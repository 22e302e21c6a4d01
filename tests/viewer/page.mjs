// Does in Chromium what a person does with the page of chorale view, and looks at what a person sees.
//   page.mjs --chorale <chorale> --source <source> --packages <folder> --browser <chromium> [--only WORDS] [--images FOLDER]
// With --images it also writes the pictures of docs/view.md. tests/viewer/run calls it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chorale, folder, open, options, start, tried } from "./browser.mjs";
import { decoded, withPalette } from "./png.mjs";

const { browser, stop } = await start();
const made = new Map();

/** Writes the page of some words of chorale view, once. */
function view(...words) {
  const key = words.join(" ");
  if (!made.has(key)) {
    const path = join(folder, `page${made.size}.html`);
    chorale("view", ...words, "-o", path);
    made.set(key, path);
  }
  return made.get(key);
}

const ring = ["plans/shipped/allgather_ring_4.json"];
/** The plan, to be changed. JavaScript cannot hold its largest number. */
function ringPlan() {
  const plan = JSON.parse(readFileSync(join(options.source, ring[0]), "utf8"));
  delete plan.max_message_size;
  return plan;
}
const text = (page, selector) => page.$eval(selector, (at) => at.innerText);
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((at) => at.innerText));
const probe = (page, name, ...words) => page.evaluate((of, all) => window.choraleView[of](...all), name, words);
const frame = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const op = (page, words, of = 0) => probe(page, "find", of, words);
/** The colour of the timeline's canvas at a point of the window. */
const colourAt = (page, x, y) =>
  page.evaluate(
    (left, top) => {
      const canvas = document.querySelector("#timeline-area canvas");
      const box = canvas.getBoundingClientRect();
      const ratio = canvas.width / box.width;
      const one = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      one.drawImage(canvas, Math.floor((left - box.left) * ratio), Math.floor((top - box.top) * ratio), 1, 1, 0, 0, 1, 1);
      return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3);
    },
    x,
    y,
  );
const light = ([r, g, b]) => (r + g + b) / 3;
async function clickOn(page, words, of = 0) {
  const number = await op(page, words, of);
  assert.notEqual(number, -1, `an operation '${words}'`);
  const { x, y } = await probe(page, "placeOf", of, number);
  await page.mouse.click(x, y);
  await frame(page);
  return number;
}
async function type(page, words) {
  await page.keyboard.press("/");
  await page.$eval("#search", (at) => (at.value = ""));
  await page.keyboard.type(words);
  await page.waitForFunction(() => /match|of/.test(document.getElementById("found").textContent));
}
/** Goes to an operation by search, which zooms to it. Measured operations may be too narrow to be clicked. */
async function goTo(page, words) {
  await type(page, `"${words}"`);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await frame(page);
}
/** Writes a picture for docs/view.md, if pictures are wanted. */
async function image(page, name, height = 760) {
  if (!options.images) return;
  const made = await page.screenshot({ clip: { x: 0, y: 0, width: 1280, height } });
  writeFileSync(join(options.images, `${name}.png`), withPalette(Buffer.from(made)));
}

const cases = {
  async "a click on an operation shows its line, bytes, channel and what it waits for"(test) {
    const { page } = await test(view(...ring));
    await clickOn(page, "rank 1, block 2, operation 5");
    assert.match(await text(page, "#details .op-text"), /^put input\[2:3\] -> output\[6:7\] of rank 2/);
    assert.equal(await text(page, "#details .place"), "rank 1, block 2, operation 5");
    assert.equal(await text(page, "#details .line"), "allgather_ring.cpp:39");
    assert.match(await text(page, "#details .bytes"), /^up to 64 KiB$/);
    assert.match(await text(page, "#details .channel"), /memory channel/);
    assert.match(await text(page, "#details .predicted"), /^from .* us, takes .* us$/);
    await clickOn(page, "rank 1, block 2, operation 3");
    assert.match(await text(page, "#details .op-text"), /^relaxed_wait /);
    const awaited = await texts(page, "#details .awaits button");
    assert.equal(awaited.length, 1);
    assert.match(awaited[0], /^rank 2, block 2: relaxed_signal rank 1/);
    await page.click("#details .awaits button");
    assert.match(await text(page, "#details .op-text"), /^relaxed_signal rank 1/);
    assert.match((await texts(page, "#details .awaited button"))[0], /^rank 1, block 2: relaxed_wait/);
  },

  async "an operation's source line is shown if the file is at hand"(test) {
    const { page } = await test(view("plans/allgather_ring.cpp", "--set", "ranks=2"));
    await clickOn(page, "rank 0, block 0, operation 5");
    const [file, line] = (await text(page, "#details .line")).split(":");
    const wanted = readFileSync(join(options.source, "plans", file), "utf8").split("\n")[line - 1].trim();
    assert.equal(await text(page, "#details .source"), wanted);
  },

  async "hovering shows the operation and draws edges to those it waits for"(test) {
    const { page } = await test(view(...ring));
    const wait = await op(page, "rank 1, block 2, operation 3");
    const there = await probe(page, "placeOf", 0, wait);
    const picture = () => page.$eval("#timeline-area canvas", (at) => at.toDataURL());
    await page.mouse.move(there.x, 5);
    await frame(page);
    const before = await picture();
    await page.mouse.move(there.x, there.y);
    await frame(page);
    assert.match(await text(page, "#tip"), /relaxed_wait rank 2[\s\S]*allgather_ring\.cpp:\d+[\s\S]*waits for rank 2, block 2: relaxed_signal/);
    assert.notEqual(await picture(), before);
    await page.mouse.move(there.x, 5);
    await frame(page);
    assert.equal(await page.$eval("#tip", (at) => at.hidden), true);
  },

  async "search finds operations by text, line and rank, and steps through them"(test) {
    const { page } = await test(view(...ring));
    await type(page, 'put "rank 3, block 1"');
    assert.equal(await text(page, "#found"), "3 matches");
    await page.keyboard.press("Enter");
    assert.equal(await text(page, "#found"), "1 of 3");
    assert.match(await text(page, "#details .place"), /^rank 3, block 1/);
    await page.keyboard.press("Escape");
    const first = await text(page, "#details .place");
    await page.keyboard.press("n");
    assert.equal(await text(page, "#found"), "2 of 3");
    assert.notEqual(await text(page, "#details .place"), first);
    await page.keyboard.press("p");
    assert.equal(await text(page, "#details .place"), first);
    await type(page, "allgather_ring.cpp:28");
    assert.match(await text(page, "#found"), /^\d+ matches$/);
    await type(page, "nothing has these words");
    assert.match(await text(page, "#found"), /^0 matches$/);
  },

  async "the keyboard moves along a row, between rows, zooms and shows help"(test) {
    const { page } = await test(view(...ring));
    const number = await clickOn(page, "rank 1, block 0, operation 5");
    await page.keyboard.press("ArrowRight");
    assert.equal(await text(page, "#details .place"), "rank 1, block 0, operation 6");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await text(page, "#details .place"), "rank 1, block 0, operation 5");
    await page.keyboard.press("ArrowDown");
    assert.match(await text(page, "#details .place"), /^rank 1, block 1/);
    await page.keyboard.press("ArrowUp");
    assert.match(await text(page, "#details .place"), /^rank 1, block 0/);
    const { width } = await probe(page, "placeOf", 0, number);
    await page.keyboard.press("+");
    await frame(page);
    assert.ok((await probe(page, "placeOf", 0, number)).width > 1.3 * width);
    await page.keyboard.press("-");
    await frame(page);
    assert.ok(Math.abs((await probe(page, "placeOf", 0, number)).width - width) < 1);
    await page.keyboard.press("?");
    assert.equal(await page.$eval("#help", (at) => at.open), true);
    assert.match(await text(page, "#help"), /zoom in, zoom out/);
    await page.keyboard.press("?");
    assert.equal(await page.$eval("#help", (at) => at.open), false);
    await page.keyboard.press("Escape");
    assert.match(await text(page, "#details"), /Click an operation/);
    await page.keyboard.press("2");
    assert.equal(await page.$eval("#tab-flow", (at) => at.getAttribute("aria-selected")), "true");
    await page.keyboard.press("1");
    assert.equal(await page.$eval("#timeline", (at) => at.hidden), false);
  },

  async "dark and light follow the system, and a switch changes them"(test) {
    for (const [scheme, dark] of [
      ["light", false],
      ["dark", true],
    ]) {
      const { page } = await test(view(...ring), { scheme });
      const corner = await page.$eval("#timeline-area canvas", (at) => {
        const box = at.getBoundingClientRect();
        return [box.right - 3, box.top + 3];
      });
      await frame(page);
      const is = async () => [light(await colourAt(page, ...corner)) < 80, await page.evaluate(() => getComputedStyle(document.body).backgroundColor)];
      const first = await is();
      assert.equal(first[0], dark);
      await page.click("#theme");
      await frame(page);
      const then = await is();
      assert.equal(then[0], !dark);
      assert.notEqual(first[1], then[1]);
      await page.keyboard.press("d");
      await frame(page);
      assert.deepEqual(await is(), first);
    }
  },

  async "kinds of operations differ without colour"(test) {
    const { page } = await test(view(...ring));
    // A wait is low, so the paper shows above it, where a move has its colour.
    const above = async (words) => {
      const number = await op(page, words);
      const { x, y, width, height } = await probe(page, "placeOf", 0, number);
      const left = x - width / 2 + 2;
      return [await colourAt(page, left, y - height / 2 + 1), await colourAt(page, left, y + height / 2 - 2)];
    };
    const [moveTop, moveBottom] = await above("rank 0, block 0, operation 5");
    const [waitTop, waitBottom] = await above("rank 0, block 0, operation 9");
    assert.deepEqual(moveTop, moveBottom);
    assert.ok(light(waitTop) > 235, "paper above a wait");
    assert.ok(light(waitBottom) < 235, "a wait's bar");
  },

  async "the texts of events end within their boxes"(test) {
    const program = join(folder, "a_reduce_scatter_with_slots_whose_file_has_a_long_name.cpp");
    copyFileSync(join(options.source, "tests/golden/sources/bad_slots.cpp"), program);
    const { page } = await test(view(program, "--set", "fault=parts"));
    const over = await page.$$eval(".event", (all) =>
      all.flatMap((event) => {
        const { right } = event.querySelector("rect").getBoundingClientRect();
        return [...event.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right > right).map((text) => text.textContent);
      }),
    );
    assert.deepEqual(over, []);
  },

  async "a counter-example is replayed event by event, with its culprits marked"(test) {
    const { page } = await test(view("tests/golden/sources/bad_swap.cpp"));
    assert.equal(await page.$eval("#findings", (at) => at.hidden), false, "a page with findings opens there");
    assert.match(await text(page, "#tab-findings"), /Findings \(\d+\)/);
    assert.match(await text(page, ".rendered"), /bad_swap\.cpp:12: error: this overwrites scratch\[0:1\] of rank 0/);
    const events = await page.$$eval(".event", (all) => all.map((at) => ({ label: at.getAttribute("aria-label"), kind: at.getAttribute("class") })));
    assert.equal(events.length, 6);
    assert.match(events[4].label, /A: launch 1, rank 0, block 0: copy scratch\[0:1\] -> output\[1:2\] \(bad_swap\.cpp:15\)/);
    assert.match(events[5].label, /B: launch 2, rank 1, block 0: put input\[0:1\] -> scratch\[0:1\] of rank 0/);
    const culprits = await page.$$eval(".event.culprit", (all) => all.map((at) => [at.querySelector(".badge-text").textContent, getComputedStyle(at.querySelector("rect")).strokeWidth, at.querySelectorAll("rect").length]));
    assert.deepEqual(culprits, [
      ["A", "2.5px", 2],
      ["B", "2.5px", 2],
    ]);
    assert.equal(await page.$$eval(".edge", (all) => all.length), 5);
    assert.match(await text(page, ".because"), /missing: any path from A to B[\s\S]*would order them: use_double_scratch_buffer/);

    assert.equal(await text(page, ".clock"), "event 1 of 6");
    assert.equal(await page.$$eval(".event.later", (all) => all.length), 5);
    await page.click(".next");
    assert.equal(await text(page, ".clock"), "event 2 of 6");
    for (let k = 0; k < 4; ++k) await page.keyboard.press("ArrowRight");
    assert.equal(await text(page, ".clock"), "event 6 of 6");
    assert.equal(await page.$$eval(".event.later", (all) => all.length), 0);
    assert.match(await text(page, ".event-words"), /^B: launch 2/);
    await image(page, "view-counter-example");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await text(page, ".clock"), "event 5 of 6");

    await page.click(".event.culprit");
    assert.match(await text(page, "#details .op-text"), /^copy scratch\[0:1\] -> output\[1:2\]/);
    assert.equal(await text(page, "#details .line"), "bad_swap.cpp:15");
    await page.keyboard.press("1");
    await page.keyboard.press("Escape");
    await frame(page);
    // The badge on the timeline is a disc in the colour of alarms at the upper left of its operation.
    for (const words of ["copy scratch[0:1] -> output[1:2]", "put input[0:1] -> scratch[0:1] of rank 0"]) {
      const { x, y, width, height } = await probe(page, "placeOf", 0, await op(page, words));
      const middle = [x - width / 2 + Math.min(width / 2, 10), y - height / 2 + 2];
      let red = 0;
      for (let dx = -6; dx <= 6; dx += 2)
        for (let dy = -6; dy <= 6; dy += 2) {
          const [r, g, b] = await colourAt(page, middle[0] + dx, middle[1] + dy);
          red += r > 140 && g < 90 && b < 90 ? 1 : 0;
        }
      assert.ok(red > 20, `a badge at ${words}: ${red} of 49 points are red`);
    }
  },

  async "check --view writes the page of the finding"(test) {
    const plan = join(folder, "swap.json");
    const wrong = JSON.parse(chorale("compile", "tests/golden/sources/pair_exchange.cpp"));
    delete wrong.max_message_size;
    for (const gpu of wrong.gpus) for (const block of gpu.threadblocks) block.ops = block.ops.filter((one) => one.name !== "wait");
    writeFileSync(plan, JSON.stringify(wrong));
    const path = join(folder, "finding.html");
    const done = tried("check", plan, "--view", path);
    assert.equal(done.status, 1, done.stderr);
    const { page } = await test(path);
    assert.equal(await page.$eval("#findings", (at) => at.hidden), false);
    assert.ok((await texts(page, ".finding")).length > 0);
    assert.match(await text(page, ".rendered"), /this signal seems to be never awaited[\s\S]*\[pairing\]/);
    const well = tried("check", ring[0], "--view", join(folder, "none.html"));
    assert.equal(well.status, 0);
    assert.match(well.stderr, /note: nothing was found, so .*none\.html was not written/);
  },

  async "the flow shows chunks on their way, and at the end all have arrived"(test) {
    const { page } = await test(view(...ring));
    await page.keyboard.press("2");
    await frame(page);
    const setTime = (part) =>
      page.$eval("#flow .slider", (at, value) => {
        at.value = String(value * 1000);
        at.dispatchEvent(new Event("input"));
      }, part);
    const holding = async (rank, buffer, chunk) => {
      const cells = await page.evaluate(() => window.choraleView.cells(0));
      const cell = cells.find((of) => of.rank === rank && of.buffer === buffer && of.from === chunk);
      const box = await page.$eval("#flow canvas", (at) => at.getBoundingClientRect().toJSON());
      await page.mouse.move(box.left + cell.x + cell.width / 2, box.top + cell.y + cell.height / 2);
      return text(page, ".flow-tip");
    };
    await setTime(0);
    assert.equal(await holding(2, 0, 1), "input[1:2] of rank 2 holds the input of rank 2");
    assert.equal(await holding(2, 1, 0), "output[0:1] of rank 2 holds nothing yet");
    let moving = "";
    for (let part = 0.2; part < 1 && !/put/.test(moving); part += 0.02) {
      await setTime(part);
      moving = (await texts(page, "#flow .now li")).join("\n");
    }
    assert.match(moving, /rank \d, block \d: put input\[\d+:\d+\] -> output/);
    await image(page, "view-flow", 620);
    await setTime(1);
    for (const rank of [0, 1, 2, 3])
      for (const chunk of [0, 5, 10, 15])
        assert.equal(await holding(rank, 1, chunk), `output[${chunk}:${chunk + 1}] of rank ${rank} holds the input of rank ${Math.floor(chunk / 4)}`);
    await setTime(0);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await text(page, "#flow .clock"), "0 ns");
    await page.click("#flow .play");
    assert.equal(await text(page, "#flow .play"), "Pause");
    await page.waitForFunction(() => Number(document.querySelector("#flow .slider").value) > 20);
    await page.keyboard.press("Space");
  },

  async "a reduction's chunks combine the inputs of all ranks"(test) {
    for (const plan of ["plans/shipped/allreduce_ring_4.json", "plans/shipped/allreduce_two_shot_4.json", "plans/shipped/reducescatter_direct_4.json"]) {
      const { page } = await test(view(plan));
      await page.keyboard.press("2");
      await page.$eval("#flow .slider", (at) => {
        at.value = "1000";
        at.dispatchEvent(new Event("input"));
      });
      const cells = (await page.evaluate(() => window.choraleView.cells(0))).filter((cell) => cell.buffer === 1);
      assert.ok(cells.length >= 4);
      for (const cell of cells) assert.deepEqual(cell.holds, [0, 1, 2, 3], `${plan}: output ${cell.from} of rank ${cell.rank}`);
    }
  },

  async "two plans stand beside each other"(test) {
    const { page } = await test(view("plans/shipped/allreduce_ring_4.json", "plans/shipped/allreduce_two_shot_4.json"));
    assert.equal(await text(page, "#title"), "allreduce_ring beside allreduce_two_shot");
    await clickOn(page, "reduce", 0);
    assert.equal(await text(page, "#details .plan"), "allreduce_ring");
    await clickOn(page, "rank 0, block 0, operation 0", 1);
    assert.equal(await text(page, "#details .plan"), "allreduce_two_shot");
    await page.mouse.move(5, 5);
    await frame(page);
    await image(page, "view-two-plans");
    await type(page, "rank 3, block 0");
    const found = Number((await text(page, "#found")).split(" ")[0]);
    assert.ok(found > 10);
  },

  async "measured times stand beside the predicted ones, with the gap"(test) {
    const trace = join(folder, "trace.json");
    chorale("run", ...ring, "--bytes", "1M", "--trace", trace);
    const { page } = await test(view(...ring, "--bytes", "1M", "--trace", trace));
    assert.equal(await page.$eval("#mode", (at) => at.hidden), false);
    assert.match(await text(page, "#notes"), /measured on the CPU and predicted for NVIDIA H200/);
    await goTo(page, "rank 1, block 2, operation 5");
    assert.match(await text(page, "#details .measured"), /takes/);
    assert.match(await text(page, "#details .predicted"), /takes/);
    assert.match(await text(page, "#details .gap"), /(longer|shorter) than predicted$/);
    await page.keyboard.press("Escape");
    await page.mouse.move(5, 5);
    await frame(page);
    await image(page, "view-measured");
    await page.select("#mode", "measured");
    await frame(page);
    await goTo(page, "rank 1, block 2, operation 5");
    assert.equal(await text(page, "#details .place"), "rank 1, block 2, operation 5");
    await page.keyboard.press("4");
    assert.match(await text(page, "#profile"), /Measured beside predicted[\s\S]*allgather_ring\.cpp:\d+\s+put/);
    assert.match(await text(page, "#profile"), /on the path/);
    await page.click("#profile td .link");
    assert.equal(await page.$eval("#timeline", (at) => at.hidden), false);
    await page.waitForFunction(() => /match/.test(document.getElementById("found").textContent));
    assert.doesNotMatch(await text(page, "#found"), /^0 /);

    const alone = await test(view(trace));
    await goTo(alone.page, "put, operation 5");
    assert.match(await text(alone.page, "#details .line"), /^allgather_ring\.cpp:/);
    assert.match(await text(alone.page, "#details .measured"), /takes/);
    await alone.page.keyboard.press("2");
    assert.match(await text(alone.page, "#flow"), /shown for plans of thread blocks only/);
  },

  async "a picture that the browser takes without a window shows the timeline"() {
    const picture = join(folder, "picture.png");
    const how = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${join(folder, "other")}`];
    const size = ["--window-size=1600,1200", "--force-device-scale-factor=2", "--virtual-time-budget=5000"];
    spawnSync(options.browser, [...how, ...size, `--screenshot=${picture}`, pathToFileURL(view(...ring)).href], { timeout: 120000 });
    const [width, height, bytes, pixels] = decoded(readFileSync(picture));
    let coloured = 0;
    // Bars are above the footer and at the left of the chosen operation.
    for (let y = height / 4; y < height * 0.75; ++y)
      for (let x = width / 8; x < width / 2; ++x) {
        const at = (Math.floor(y) * width + Math.floor(x)) * bytes;
        coloured += Math.max(...pixels.subarray(at, at + 3)) - Math.min(...pixels.subarray(at, at + 3)) > 60 ? 1 : 0;
      }
    assert.ok(coloured > 1000, `${coloured} coloured pixels`);
  },

  async "ranks are shown from their own first operations, unless a box says otherwise"(test) {
    const trace = join(folder, "late.json");
    chorale("simulate", ...ring, "--bytes", "1M", "--trace", trace, "-o", join(folder, "times"));
    const late = JSON.parse(readFileSync(trace, "utf8"));
    for (const event of late.traceEvents) if (event.ph === "X" && event.pid === 1) event.ts += 10;
    writeFileSync(trace, JSON.stringify(late));
    const { page } = await test(view(...ring, "--bytes", "1M", "--trace", trace));
    const put = async (rank) => {
      const { x, width } = await probe(page, "placeOf", 0, await op(page, `rank ${rank}, block 0, operation 5`));
      return x - width / 2;
    };
    assert.ok(Math.abs((await put(1)) - (await put(0))) < 1);
    await page.click("#aligned");
    await frame(page);
    assert.ok((await put(1)) - (await put(0)) > 100);
    await clickOn(page, "rank 1, block 0, operation 5");
    assert.match(await text(page, "#details .gap"), /^[01] ns (longer|shorter) than predicted$/);
  },

  async "a host schedule shows when its steps run and what they wait for"(test) {
    const schedule = ["plans/shipped/schedules/ag_matmul_p2p.json", "--ranks", "2", "--param", "M=8192"];
    const { page } = await test(view(...schedule, "--time", "matmul=120us"));
    assert.match(await text(page, "#notes"), /ag_matmul_p2p/);
    assert.match(await text(page, "#notes"), / M = 8192 .* --time matmul=120us /);
    assert.doesNotMatch(await text(page, "#notes"), /bytes through the memory/);
    await type(page, "take");
    await page.keyboard.press("Enter");
    assert.match(await text(page, "#details .op-text"), /^take /);
    assert.match(await text(page, "#details .channel"), /^flag /);
    assert.match((await texts(page, "#details .awaits button"))[0], /: post /);
    // The transfer is hidden: the second product begins when the first one has ended.
    const products = [];
    for (let turn = 0; turn < 2; ++turn) {
      await type(page, `"i = ${turn}" "call matmul" "rank 0"`);
      await page.keyboard.press("Enter");
      assert.match(await text(page, "#details .op-text"), /^call matmul /);
      products.push(await text(page, "#details .predicted"));
    }
    assert.deepEqual(products, ["from 3.73 us, takes 120.00 us", "from 125.22 us, takes 120.00 us"]);
    assert.ok(JSON.parse(await page.$eval("#data", (at) => at.textContent)).views[0].names.includes("matmul"));
    assert.ok(await page.$eval("#path-label", (at) => at.hidden), "a schedule has no critical path to underline");
    const { page: unknown } = await test(view(...schedule));
    assert.match(await text(unknown, "#notes"), /The predicted time of matmul is only that of its bytes .* --time matmul=20us/);
  },

  async "names in files cannot become part of the page"(test) {
    const plan = ringPlan();
    const evil = "</script><script>window.broken=1</script><img src=x onerror='window.broken=2'><!--<script>";
    plan.name = evil;
    plan.chorale.source = plan.chorale.source.map((line) => line.replace("allgather_ring.cpp", evil.replaceAll("/", "|")));
    const path = join(folder, "evil.json");
    writeFileSync(path, JSON.stringify(plan));
    const { page } = await test(view(path));
    assert.equal(await text(page, "#title"), evil);
    assert.equal(await page.evaluate(() => window.broken), undefined);
    await clickOn(page, "rank 1, block 2, operation 5");
    assert.ok((await text(page, "#details .line")).includes("<img src=x"));
    const { x, y } = await probe(page, "placeOf", 0, 5);
    await page.mouse.move(x, y);
    await page.keyboard.press("4");
    assert.equal(await page.evaluate(() => window.broken), undefined);
    assert.equal(await page.$$eval("img", (all) => all.length), 0);
  },

  async "a plan without operations and a broken page say so"(test) {
    const plan = ringPlan();
    plan.gpus.forEach((gpu) => (gpu.threadblocks = []));
    const path = join(folder, "empty.json");
    writeFileSync(path, JSON.stringify(plan));
    const { page } = await test(view(path, "--allow", "proofs"));
    await page.keyboard.press("1");
    assert.match(await text(page, "#notes"), /has no operations/);
    await page.keyboard.press("2");
    assert.match(await text(page, "#flow"), /The plan has no operations/);

    const broken = join(folder, "broken.html");
    const whole = readFileSync(view(...ring), "utf8");
    writeFileSync(broken, whole.replace('"version":1', '"version":99'));
    const other = await test(broken);
    assert.match(await text(other.page, "[role=alert]"), /cannot be shown: the page's data have version 99.*Write it again/);
  },

  async "operations narrower than a pixel are drawn together, and zooming tells them apart"(test) {
    const { page } = await test(view("allgather_ring", "--set", "ranks=128", "--set", "instances=1", "--allow", "proofs"));
        const { y } = await probe(page, "placeOf", 0, await op(page, "rank 0, block 0, operation 5"));
    let drawn = 0;
    for (let x = 160; x < 900; x += 7) drawn += light(await colourAt(page, x, y)) < 235 ? 1 : 0;
    assert.ok(drawn > 60, `${drawn} of 106 points are drawn`);
    await type(page, "put output");
    await page.keyboard.press("Enter");
    await frame(page);
    const { place } = await page.evaluate(() => ({ place: document.querySelector("#details .place").textContent }));
    const there = await probe(page, "placeOf", 0, await op(page, place));
    assert.ok(there.width > 6, `${there.width} pixels wide`);
    await page.mouse.click(there.x, there.y);
    assert.equal(await text(page, "#details .place"), place);
  },

  async "the timeline of a plan"(test) {
    const { page } = await test(view("plans/shipped/allreduce_ring_4.json"));
    await clickOn(page, "put input[1:2]");
    await page.mouse.move(10, 10);
    await frame(page);
    await image(page, "view-timeline");
    assert.match(await text(page, "#details .op-text"), /\w/);
  },
};

let failed = 0;
for (const [name, body] of Object.entries(cases)) {
  if (options.only && !name.includes(options.only)) continue;
  const opened = [];
  const started = performance.now();
  try {
    await body(async (path, how) => {
      const one = await open(browser, path, how);
      opened.push(one);
      return one;
    });
    assert.ok(opened.length > 0 || body.length === 0);  // a case without a parameter starts a browser of its own
    for (const { said, requests } of opened) {
      assert.deepEqual(said, [], "the console is silent");
      assert.deepEqual(requests, [], "nothing is fetched");
    }
    console.log(`ok: ${name} (${Math.round(performance.now() - started)} ms)`);
  } catch (error) {
    ++failed;
    console.log(`FAILED: ${name}\n${error.stack ?? error}${error.stderr ? `\n${error.stderr}` : ""}`);
    for (const { said } of opened) if (said.length) console.log(`the console says: ${said.join("\n")}`);
  }
  for (const { page } of opened) await page.close();
}
await stop();
process.exit(failed ? 1 : 0);
