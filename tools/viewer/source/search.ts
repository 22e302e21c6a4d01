// Finds operations by words. An operation matches if its text, line, channel or place has each of them.
// Words in double quotes are looked for together.
import type { View } from "./model";

export interface Found {
  matches: Uint8Array[];
  /** Lists the view and the operation of each match, in order. */
  list: { view: number; op: number }[];
  done: boolean;
}

/** Gives the milliseconds of searching after which the page gets a chance to draw. */
const sliceMs = 12;

/** Searches a little at a time, so that the page stays usable. Calls `tell` after each part, and last with `done`. */
export function search(views: View[], words: string, tell: (found: Found) => void): () => void {
  const terms = [...words.toLowerCase().matchAll(/"([^"]+)"?|([^\s"]+)/g)].map((of) => of[1] ?? of[2]);
  const found: Found = { matches: views.map((view) => new Uint8Array(view.count)), list: [], done: false };
  let stopped = false;
  const tables = views.map((view) => ({
    name: terms.map((term) => view.raw.names.map((name) => name.toLowerCase().includes(term))),
  }));
  let view = 0;
  let op = 0;
  const matches = (of: View, at: number, table: (typeof tables)[0]): boolean => {
    let text: string | undefined;
    return terms.every((term, k) => {
      if (table.name[k][of.nameNumber(at)]) return true;
      text ??= `${of.textOf(at)}\n${of.lineOf(at)}\n${of.channelOf(at)}\n${of.placeOf(at)}`.toLowerCase();
      return text.includes(term);
    });
  };
  const step = () => {
    if (stopped) return;
    const until = performance.now() + sliceMs;
    while (view < views.length) {
      const of = views[view];
      while (op < of.count) {
        if (matches(of, op, tables[view])) {
          found.matches[view][op] = 1;
          found.list.push({ view, op });
        }
        ++op;
        if (op % 512 === 0 && performance.now() > until) {
          tell(found);
          setTimeout(step);
          return;
        }
      }
      ++view;
      op = 0;
    }
    found.done = true;
    tell(found);
  };
  if (terms.length) step();
  else {
    found.done = true;
    tell(found);
  }
  return () => (stopped = true);
}
