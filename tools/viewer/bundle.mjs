// Makes the page without data: bundle.mjs OUTPUT. The packages of package-lock.json stand beside this file; make calls it.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const packages = new Set();
const bundle = async (entry) => {
  const made = await build({
    absWorkingDir: here,
    entryPoints: [join("source", entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2022", "chrome109", "firefox115", "safari16"],
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
  });
  for (const [path, { bytesInOutput }] of Object.values(made.metafile.outputs).flatMap((of) => Object.entries(of.inputs))) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
    if (name && bytesInOutput) packages.add(name);
  }
  return made.outputFiles[0].text.trim();
};

const page = await readFile(join(here, "source", "page.html"), "utf8");
const style = await bundle("style.css");
const script = await bundle("app.ts");
// The licences of the packages ask that their texts go along.
const licences = new Map();
for (const name of [...packages].sort()) {
  const text = (await readFile(join(here, "node_modules", name, "LICENSE"), "utf8")).trim();
  licences.set(text, [...(licences.get(text) ?? []), name]);
}
const licence = [...licences].map(([text, names]) => `<!-- ${names.join(", ")}:\n${text.replaceAll("--", "- -")}\n-->\n`).join("");
// The texts may contain "$&", which a plain replace() would read as a pattern.
const filled = page
  .replace("<html", () => `${licence}<html`)
  .replace("@STYLE@", () => style)
  .replace("@SCRIPT@", () => script);
await writeFile(process.argv[2], filled);
