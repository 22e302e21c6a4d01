// Starts Chromium and opens pages in it, for page.mjs and benchmark.mjs.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

export const { values: options } = parseArgs({
  options: {
    chorale: { type: "string" },
    source: { type: "string" },
    packages: { type: "string" },
    browser: { type: "string" },
    only: { type: "string" },
    images: { type: "string" },
    operations: { type: "string" },
  },
});

const { launch } = createRequire(join(options.packages, "package.json"))("puppeteer-core");
export const folder = mkdtempSync(join(tmpdir(), "chorale-viewer-"));

export const chorale = (...words) => execFileSync(options.chorale, words, { cwd: options.source, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });
export const tried = (...words) => spawnSync(options.chorale, words, { cwd: options.source, encoding: "utf8", maxBuffer: 1 << 28 });

export async function start() {
  const browser = await launch({
    executablePath: options.browser,
    headless: true,
    timeout: 120000,
    protocolTimeout: 240000,
    userDataDir: join(folder, "profile"),
    // The sandbox needs rights that containers lack. The pages are our own.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none", "--hide-scrollbars"],
  });
  return {
    browser,
    async stop() {
      // On a busy machine Chromium may take minutes to end by itself.
      const ended = await Promise.race([browser.close().then(() => true), new Promise((done) => setTimeout(done, 10000, false))]);
      if (!ended) browser.process()?.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Opens a file, and collects what the console says and which requests are made. */
export async function open(browser, path, { width = 1280, height = 760, scheme = "light" } = {}) {
  const page = await browser.newPage();
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  const said = [];
  const requests = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  const url = pathToFileURL(path).href;
  await page.goto(url, { timeout: 120000 });
  await page.waitForSelector("body[data-ready]", { timeout: 120000 });
  return { page, said, requests: requests.filter((request) => request !== url) };
}
