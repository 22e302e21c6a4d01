// Makes the page: its parts, its keys, and the choice of an operation.
import { Findings } from "./findings";
import { Flow } from "./flow";
import { readModel, type View } from "./model";
import { showProfile } from "./profile";
import { search, type Found } from "./search";
import { themeChanged } from "./theme";
import { Timeline, type Hit } from "./timeline";
import { bytesWords, count, element, timeWords } from "./words";

const tabs = ["timeline", "flow", "findings", "profile"] as const;
type Tab = (typeof tabs)[number];

const get = <Type extends HTMLElement>(id: string) => document.getElementById(id) as Type;

class Page {
  private readonly timeline: Timeline;
  private readonly flows: Flow[] = [];
  private readonly findings: Findings[] = [];
  private tab: Tab = "timeline";
  private chosen?: { view: number; op: number };
  private found?: Found;
  private foundAt = -1;
  private stopSearch = () => {};

  constructor(
    made: string,
    private readonly views: View[],
  ) {
    const title = views.map((view) => view.raw.name).join(" beside ");
    document.title = `${title} - chorale view`;
    get("title").textContent = title;
    get("made").textContent = `made by chorale ${made}`;
    this.timeline = new Timeline(get("timeline-area"), views, {
      select: (view, op) => this.choose(view, op, false),
      hover: (hit, x, y) => this.hover(hit, x, y),
    });
    this.describe();
    views.forEach((view, at) => {
      const findings = element("section");
      get("findings-area").append(findings);
      this.findings.push(
        new Findings(findings, view, {
          select: (op) => this.choose(at, op, true),
          mark: (marks) => this.mark(at, marks),
        }),
      );
      const profile = element("section");
      get("profile-area").append(profile);
      showProfile(profile, view, (words) => this.find(words));
    });
    const found = views.reduce((all, view) => all + view.raw.findings.length, 0);
    get("tab-findings").textContent = found ? `Findings (${found})` : "Findings";
    get("tab-findings").classList.toggle("alarm", found > 0);
    this.modes();
    for (const tab of tabs) get(`tab-${tab}`).addEventListener("click", () => this.open(tab));
    get("theme").addEventListener("click", () => this.switchTheme());
    get("help-button").addEventListener("click", () => this.help());
    get("close-help").addEventListener("click", () => this.help());
    get("search").addEventListener("input", () => this.search(get<HTMLInputElement>("search").value));
    get("next").addEventListener("click", () => this.next(1));
    get("previous").addEventListener("click", () => this.next(-1));
    // Only profiles have a critical path, and a host schedule has none.
    get("path-label").hidden = !views.some((view) => Object.keys(view.raw.profiles).length > 0);
    get<HTMLInputElement>("path").addEventListener("change", (event) => {
      this.timeline.showPath = (event.target as HTMLInputElement).checked;
      this.timeline.redraw();
    });
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    this.details();
    this.open(found ? "findings" : "timeline");
  }

  private describe(): void {
    const notes = get("notes");
    for (const view of this.views) {
      const facts = element("p", "facts", [view.raw.file === "-" ? view.raw.name : `${view.raw.name} (${view.raw.file})`, ...view.raw.facts].join(" · "));
      facts.append(` · ${count(view.count, "operation")}`);
      notes.append(facts);
      for (const note of view.raw.notes) notes.append(element("p", "note", `Note: ${note}.`));
      if (!view.count) notes.append(element("p", "note", `Note: ${view.raw.name} has no operations.`));
    }
  }

  /** Lets the reader choose between measured and predicted times, for views that have both. */
  private modes(): void {
    if (!this.views.some((view) => view.tracks.length > 1)) return;
    const choice = get<HTMLSelectElement>("mode");
    choice.hidden = false;
    const aligned = get<HTMLInputElement>("aligned");
    get("aligned-label").hidden = false;
    const show = () => {
      this.views.forEach((view, at) => {
        const measuredFirst = [...view.tracks].sort((a) => (a.key === "measured" ? -1 : 1));
        const wanted = measuredFirst.filter((track) => choice.value === "both" || track.key === choice.value);
        const shown = wanted.length ? wanted : measuredFirst;
        this.timeline.show(at, aligned.checked ? shown.map((track) => (track.steps ? track : track.aligned())) : shown);
      });
    };
    choice.addEventListener("change", show);
    aligned.addEventListener("change", show);
    show();
  }

  private mark(view: number, marks: { op: number; mark: string }[]): void {
    this.timeline.marks = [...this.timeline.marks.filter((of) => of.view !== view), ...marks.map((of) => ({ view, ...of }))];
    this.timeline.redraw();
  }

  private open(tab: Tab): void {
    this.tab = tab;
    for (const other of tabs) {
      get(`tab-${other}`).setAttribute("aria-selected", String(other === tab));
      get(other).hidden = other !== tab;
    }
    if (tab === "flow" && !this.flows.length) {
      this.views.forEach((view, at) => {
        const section = element("section");
        get("flow-area").append(section);
        this.flows.push(new Flow(section, view, (op) => this.choose(at, op, true)));
      });
    }
    this.timeline.redraw();
    this.flows.forEach((flow) => flow.draw());
  }

  private choose(view: number, op: number, reveal: boolean): void {
    this.chosen = op < 0 ? undefined : { view, op };
    this.timeline.choose(view, op);
    if (op >= 0 && reveal) this.timeline.reveal(view, op);
    this.details();
  }

  private details(): void {
    const area = get("details");
    area.replaceChildren(element("h2", "", "Operation"));
    if (!this.chosen) {
      area.append(element("p", "empty", "Click an operation to see its line, its bytes and what it waits for. Press ? for the keys."));
      return;
    }
    const { view: number, op } = this.chosen;
    const view = this.views[number];
    area.append(element("p", "op-text", view.textOf(op)));
    const list = element("dl");
    const add = (name: string, text: string, kind = "") => {
      if (!text) return;
      list.append(element("dt", "", name), element("dd", kind, text));
    };
    if (this.views.length > 1) add("plan", view.raw.name, "plan");
    add("place", view.placeOf(op), "place");
    add("line", view.lineOf(op) || "unknown", "line");
    add("source", view.lineText(op).trim(), "source");
    add("channel", view.channelOf(op) || "none", "channel");
    const bytes = view.bytesOf(op);
    if (bytes) add("bytes", `up to ${bytesWords(bytes)}`, "bytes");
    const lengths = new Map<string, number>();
    for (const track of view.tracks) {
      if (Number.isNaN(track.begin[op])) {
        add(track.key, "no time");
        continue;
      }
      const length = track.end[op] - track.begin[op];
      if (track.steps) {
        add("position", `step ${track.begin[op]} of an order in which operations may run`);
        continue;
      }
      lengths.set(track.key, length);
      add(track.key, `from ${timeWords(track.begin[op])}, takes ${timeWords(length)}`, track.key);
    }
    if (lengths.size === 2) {
      const gap = lengths.get("measured")! - lengths.get("predicted")!;
      add("gap", `${timeWords(Math.abs(gap))} ${gap >= 0 ? "longer" : "shorter"} than predicted`, "gap");
    }
    area.append(list);
    this.links(area, "Waits for", "awaits", view, number, view.awaits(op));
    this.links(area, "Awaited by", "awaited", view, number, view.awaitedBy(op));
    if (this.findings[number].about(op) >= 0) {
      const button = element("button", "link", "There is a finding about this operation.");
      button.addEventListener("click", () => this.open("findings"));
      area.append(button);
    }
  }

  private links(area: HTMLElement, title: string, kind: string, view: View, number: number, ops: Uint32Array): void {
    if (!ops.length) return;
    area.append(element("h3", "", title));
    const list = element("ul", kind);
    for (const op of ops.subarray(0, 20)) {
      const item = element("li");
      const button = element("button", "link", `${view.rowName(view.rowOf[op])}: ${view.textOf(op)}`);
      button.addEventListener("click", () => this.choose(number, op, true));
      item.append(button);
      list.append(item);
    }
    if (ops.length > 20) list.append(element("li", "", `and ${ops.length - 20} more`));
    area.append(list);
  }

  private hover(hit: Hit | undefined, x: number, y: number): void {
    const tip = get("tip");
    tip.hidden = !hit;
    if (!hit) return;
    const view = this.views[hit.view];
    const { op, track } = hit;
    const length = track.end[op] - track.begin[op];
    const lines = [view.textOf(op), `${view.placeOf(op)}${view.lineOf(op) ? ` · ${view.lineOf(op)}` : ""}`];
    const bytes = view.bytesOf(op);
    const facts = [track.steps ? `step ${track.begin[op]}` : `${track.key} ${timeWords(length)}`];
    if (bytes) facts.push(`up to ${bytesWords(bytes)}`);
    if (view.channelOf(op)) facts.push(view.channelOf(op));
    lines.push(facts.join(" · "));
    for (const other of view.awaits(op).subarray(0, 3)) lines.push(`waits for ${view.rowName(view.rowOf[other])}: ${view.textOf(other)}`);
    for (const other of view.awaitedBy(op).subarray(0, 3)) lines.push(`awaited by ${view.rowName(view.rowOf[other])}: ${view.textOf(other)}`);
    if (hit.together > 1) lines.push(`${count(hit.together, "operation")} are here: zoom in by + to tell them apart`);
    tip.replaceChildren(...lines.map((line) => element("div", "", line)));
    tip.style.left = `${Math.min(x + 14, window.innerWidth - 460)}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > window.innerHeight ? y - 12 - tip.offsetHeight : y + 18}px`;
  }

  private find(words: string): void {
    get<HTMLInputElement>("search").value = words;
    this.open("timeline");
    this.search(words);
  }

  private search(words: string): void {
    this.stopSearch();
    this.foundAt = -1;
    this.found = undefined;
    if (!words.trim()) {
      this.views.forEach((_, view) => this.timeline.mark(view));
      get("found").textContent = "";
      return;
    }
    this.stopSearch = search(this.views, words, (found) => {
      this.found = found;
      get("found").textContent = found.done ? `${count(found.list.length, "match").replace(/matchs$/, "matches")}` : `${found.list.length} so far`;
      if (found.done) this.views.forEach((_, view) => this.timeline.mark(view, found.matches[view]));
    });
  }

  private next(step: number): void {
    const list = this.found?.list ?? [];
    if (!list.length) return;
    this.foundAt = this.foundAt < 0 ? (step > 0 ? 0 : list.length - 1) : (this.foundAt + step + list.length) % list.length;
    const { view, op } = list[this.foundAt];
    get("found").textContent = `${this.foundAt + 1} of ${list.length}`;
    this.choose(view, op, true);
  }

  private help(): void {
    const help = get<HTMLDialogElement>("help");
    if (help.open) help.close();
    else help.showModal();
  }

  private switchTheme(): void {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.recolour();
  }

  private recolour(): void {
    themeChanged();
    this.timeline.redraw();
    this.flows.forEach((flow) => flow.draw());
  }

  /** Goes to the neighbour of the chosen operation in its row. */
  private along(step: number): void {
    const { view, op } = this.chosen!;
    const of = this.views[view];
    const row = of.rowOf[op];
    const next = op + step;
    if (next >= of.firstOp[row] && next < of.firstOp[row + 1]) this.choose(view, next, true);
  }

  /** Goes to the operation of the row above or below that is nearest in time. */
  private across(step: number): void {
    const { view, op } = this.chosen!;
    const of = this.views[view];
    const track = this.timeline.shown(view)[0];
    const time = track.begin[op];
    for (let row = of.rowOf[op] + step; row >= 0 && row < of.rows.length; row += step) {
      if (track.first[row] === track.first[row + 1]) continue;
      const at = Math.min(track.firstAfter(row, time), track.first[row + 1] - 1);
      this.choose(view, track.order[at], true);
      return;
    }
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const typing = target instanceof HTMLInputElement && target.type === "search";
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") target.blur();
      return;
    }
    if (get<HTMLDialogElement>("help").open && event.key !== "?") return;
    if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) {
      if (event.key.startsWith("Arrow")) return;
    }
    const replaying = this.tab === "findings" || this.tab === "flow";
    const actions: Record<string, () => void> = {
      ArrowLeft: () => (replaying ? this.step(false) : this.chosen ? this.along(-1) : this.timeline.panBy(-0.2)),
      ArrowRight: () => (replaying ? this.step(true) : this.chosen ? this.along(1) : this.timeline.panBy(0.2)),
      ArrowUp: () => (this.chosen ? this.across(-1) : this.timeline.scrollRows(-2)),
      ArrowDown: () => (this.chosen ? this.across(1) : this.timeline.scrollRows(2)),
      "+": () => this.timeline.zoomBy(1.6),
      "=": () => this.timeline.zoomBy(1.6),
      "-": () => this.timeline.zoomBy(1 / 1.6),
      "0": () => this.timeline.fit(),
      "/": () => get("search").focus(),
      "?": () => this.help(),
      n: () => this.next(1),
      p: () => this.next(-1),
      d: () => this.switchTheme(),
      Escape: () => this.choose(0, -1, false),
      "1": () => this.open("timeline"),
      "2": () => this.open("flow"),
      "3": () => this.open("findings"),
      "4": () => this.open("profile"),
    };
    const onButton = target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter");
    if (event.key === " " && replaying && !onButton) {
      event.preventDefault();
      if (this.tab === "flow") this.flows.forEach((flow) => flow.toggle());
      else this.findings.forEach((of) => of.toggle());
      return;
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private step(forward: boolean): void {
    if (this.tab === "flow") this.flows.forEach((flow) => flow.step(forward));
    else this.findings.forEach((of) => of.step(forward));
  }

  /** Serves tests and benchmarks. For example, it tells where an operation is in the window, and how long frames took. */
  readonly probe = {
    placeOf: (view: number, op: number) => this.timeline.placeOf(view, op),
    count: (view: number) => this.views[view].count,
    find: (view: number, words: string) => {
      const of = this.views[view];
      for (let op = 0; op < of.count; ++op) if (of.textOf(op).includes(words) || of.placeOf(op) === words) return op;
      return -1;
    },
    cells: (view: number) => this.flows[view]?.shownCells(),
    drawTimes: () => this.timeline.drawTimes,
    fit: () => this.timeline.fit(),
    zoomBy: (factor: number) => this.timeline.zoomBy(factor),
    panBy: (part: number) => this.timeline.panBy(part),
  };
}

function start(): void {
  const started = performance.now();
  try {
    const { made, views } = readModel(get("data").textContent ?? "");
    const page = new Page(made, views);
    get("busy").hidden = true;
    Object.assign(window, { choraleView: page.probe });
    requestAnimationFrame(() => requestAnimationFrame(() => (document.body.dataset.ready = String(Math.round(performance.now() - started)))));
  } catch (error) {
    const busy = get("busy");
    busy.hidden = false;
    busy.className = "error";
    busy.setAttribute("role", "alert");
    busy.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}. Write it again with chorale view.`;
    document.body.dataset.ready = "failed";
  }
}

start();
