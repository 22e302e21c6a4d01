// Shows findings, and replays their counter-examples event by event.
import { select } from "d3-selection";
import type { Event, Finding, View } from "./model";
import { count, element } from "./words";

const rowHeight = 58;
const columnWidth = 320;
const left = 64;
const top = 34;

export class Findings {
  private finding = -1;
  private shown = 0;
  private playing = 0;
  private readonly list = element("div", "finding-list");
  private readonly body = element("div", "finding-body");

  constructor(
    host: HTMLElement,
    private readonly view: View,
    private readonly on: { select(op: number): void; mark(marks: { op: number; mark: string }[]): void },
  ) {
    host.append(element("h2", "", `Findings in ${view.raw.name}`));
    if (!view.raw.findings.length) {
      host.append(
        element(
          "p",
          "empty",
          view.kind === "trace" ? "A trace has no findings: chorale view PLAN checks a plan." : "Nothing was found in this plan.",
        ),
      );
      return;
    }
    host.append(this.list, this.body);
    view.raw.findings.forEach((of, at) => {
      const button = element("button", "finding");
      button.append(element("span", "check", of.check), element("span", "what", of.text));
      if (of.line) button.append(element("span", "where", of.line));
      button.addEventListener("click", () => this.open(at));
      this.list.append(button);
    });
    this.open(0);
  }

  /** Returns the position of the first finding about an operation; -1 if there is none. */
  about(op: number): number {
    return this.view.raw.findings.findIndex((of) => of.op === op || of.events.some((event) => event.op === op));
  }

  private current(): Finding | undefined {
    return this.view.raw.findings[this.finding];
  }

  private open(at: number): void {
    this.stop();
    this.finding = at;
    this.shown = 0;
    [...this.list.children].forEach((button, k) => button.setAttribute("aria-current", String(k === at)));
    this.draw();
    this.tellMarks();
  }

  /** Marks the culprits in the timeline or, if the finding has no events, its operation. */
  tellMarks(): void {
    const finding = this.current();
    if (!finding) return this.on.mark([]);
    const marks = finding.events
      .filter((event) => event.op >= 0 && event.part !== "context")
      .map((event) => ({ op: event.op, mark: event.mark || "!" }));
    if (!marks.length && finding.op >= 0) marks.push({ op: finding.op, mark: "!" });
    this.on.mark(marks);
  }

  /** Shows the next event, or the one before. */
  step(forward: boolean): void {
    const finding = this.current();
    if (!finding?.events.length) return;
    this.shown = Math.max(0, Math.min(this.shown + (forward ? 1 : -1), finding.events.length - 1));
    this.draw();
  }

  toggle(): void {
    if (this.playing) return this.stop();
    const finding = this.current();
    if (!finding?.events.length) return;
    if (this.shown + 1 >= finding.events.length) this.shown = 0;
    this.playing = window.setInterval(() => {
      this.step(true);
      if (this.shown + 1 >= finding.events.length) this.stop();
    }, 900);
    this.draw();
  }

  private stop(): void {
    if (this.playing) window.clearInterval(this.playing);
    this.playing = 0;
    const button = this.body.querySelector(".play");
    if (button) button.textContent = "Play";
  }

  private draw(): void {
    const finding = this.current()!;
    this.body.replaceChildren();
    this.body.append(element("pre", "rendered", finding.rendered.trimEnd()));
    if (!finding.events.length) {
      this.body.append(element("p", "empty", "This finding has no counter-example."));
      return;
    }
    const event = finding.events[this.shown];
    const controls = element("div", "controls");
    const back = element("button", "back", "Back");
    const next = element("button", "next", "Next");
    const play = element("button", "play", this.playing ? "Pause" : "Play");
    const slider = element("input", "slider");
    slider.type = "range";
    slider.min = "1";
    slider.max = String(finding.events.length);
    slider.value = String(this.shown + 1);
    slider.setAttribute("aria-label", "Event");
    const where = element("output", "clock", `event ${this.shown + 1} of ${finding.events.length}`);
    back.disabled = this.shown === 0;
    next.disabled = this.shown + 1 === finding.events.length;
    back.addEventListener("click", () => this.step(false));
    next.addEventListener("click", () => this.step(true));
    play.addEventListener("click", () => this.toggle());
    slider.addEventListener("input", () => {
      this.shown = Number(slider.value) - 1;
      this.draw();
      this.body.querySelector<HTMLInputElement>(".slider")?.focus();
    });
    controls.append(play, back, slider, next, where);
    const said = element("p", "event-words", words(event));
    said.setAttribute("aria-live", "polite");
    this.body.append(element("h3", "", "Counter-example"), controls, said, this.picture(finding));
    this.body.querySelector(".event.now")?.scrollIntoView({ block: "nearest" });
    if (finding.leftOut) this.body.append(element("p", "", `${count(finding.leftOut, "more event")} are not shown.`));
    const reasons = element("ul", "because");
    for (const reason of finding.because) reasons.append(element("li", "", reason));
    for (const remedy of finding.remedies) reasons.append(element("li", "remedy", `would order them: ${remedy}`));
    this.body.append(reasons);
  }

  private picture(finding: Finding): HTMLElement {
    const actors = [...new Set(finding.events.map((event) => event.actor))];
    const column = (event: Event) => left + actors.indexOf(event.actor) * columnWidth;
    const row = (at: number) => top + at * rowHeight;
    const host = element("div", "events");
    const width = left + actors.length * columnWidth;
    const svg = select(host)
      .append("svg")
      .attr("width", width)
      .attr("height", top + finding.events.length * rowHeight)
      .attr("role", "list")
      .attr("aria-label", "Events of the counter-example");
    const arrow = svg.append("defs").append("marker").attr("id", "arrow").attr("viewBox", "0 0 8 8");
    arrow.attr("refX", 7).attr("refY", 4).attr("markerWidth", 8).attr("markerHeight", 8).attr("orient", "auto");
    arrow.append("path").attr("d", "M0,0L8,4L0,8z").attr("class", "edge-head");
    actors.forEach((actor, at) => {
      const x = left + at * columnWidth;
      svg.append("text").attr("class", "actor").attr("x", x).attr("y", 18).text(actor);
      svg
        .append("line")
        .attr("class", "life")
        .attr("x1", x + 6)
        .attr("x2", x + 6)
        .attr("y1", top - 8)
        .attr("y2", top + finding.events.length * rowHeight);
    });
    for (const [from, to, publishes] of finding.edges) {
      const a = finding.events[from];
      const b = finding.events[to];
      if (!a || !b) continue;
      const same = a.actor === b.actor;
      const x0 = column(a) + (same ? 0 : column(b) > column(a) ? columnWidth - 34 : 0);
      const x1 = column(b) + (same ? 0 : column(a) > column(b) ? columnWidth - 34 : 0);
      const y0 = row(from) + 22;
      const y1 = row(to) + 22;
      const d = same
        ? `M${x0},${y0}C${x0 - 40},${y0} ${x1 - 40},${y1} ${x1},${y1}`
        : `M${x0},${y0}C${(x0 + x1) / 2},${y0} ${(x0 + x1) / 2},${y1} ${x1},${y1}`;
      svg
        .append("path")
        .attr("class", publishes ? "edge" : "edge over")
        .attr("d", d)
        .attr("marker-end", "url(#arrow)")
        .classed("later", Math.max(from, to) > this.shown);
    }
    finding.events.forEach((event, at) => {
      const group = svg
        .append("g")
        .attr("class", `event ${event.part}`)
        .attr("role", "listitem")
        .attr("tabindex", 0)
        .attr("aria-label", `${at + 1}: ${words(event)}`)
        .attr("transform", `translate(${column(event)},${row(at)})`)
        .classed("later", at > this.shown)
        .classed("now", at === this.shown)
        .on("click", () => {
          this.shown = at;
          this.draw();
          if (event.op >= 0) this.on.select(event.op);
        })
        .on("keydown", (key: KeyboardEvent) => {
          if (key.key !== "Enter") return;
          this.shown = at;
          this.draw();
          if (event.op >= 0) this.on.select(event.op);
        });
      const box = columnWidth - 34;
      group.append("rect").attr("width", box).attr("height", 44).attr("rx", event.part === "missing" ? 0 : 5);
      // A second frame marks culprits for those who do not see their colour.
      if (event.part === "culprit") group.append("rect").attr("class", "inner").attr("x", 3).attr("y", 3).attr("width", box - 6).attr("height", 38).attr("rx", 3);
      const text = event.part === "missing" ? `never: ${event.text}` : event.text;
      const x = event.mark ? 30 : 8;
      const place = `launch ${event.launch}${event.line ? `, ${event.line}` : ""}`;
      group.append("text").attr("x", x).attr("y", 18).text(shortened(text, box - x - 8, 12)).append("title").text(text);
      group.append("text").attr("class", "small").attr("x", x).attr("y", 35).text(shortened(place, box - x - 8, 11)).append("title").text(place);
      if (event.mark) {
        group.append("circle").attr("class", "badge").attr("cx", 15).attr("cy", 22).attr("r", 10);
        group.append("text").attr("class", "badge-text").attr("x", 15).attr("y", 26).text(event.mark);
      }
      svg.append("text").attr("class", "number").attr("x", 4).attr("y", row(at) + 26).text(String(at + 1));
    });
    return host;
  }
}

const ruler = document.createElement("canvas").getContext("2d");

/** Returns the text, or its beginning if it is wider than `room` pixels in letters of `size` pixels. */
function shortened(text: string, room: number, size: number): string {
  if (!ruler) return text;
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  const fits = (part: string) => ruler.measureText(part).width <= room;
  if (fits(text)) return text;
  let length = text.length;
  while (length > 0 && !fits(`${text.slice(0, length)}…`)) --length;
  return `${text.slice(0, length)}…`;
}

function words(event: Event): string {
  const mark = event.mark ? `${event.mark}: ` : "";
  const never = event.part === "missing" ? "never happens: " : "";
  return `${mark}launch ${event.launch}, ${event.actor}: ${never}${event.text}${event.line ? ` (${event.line})` : ""}`;
}
