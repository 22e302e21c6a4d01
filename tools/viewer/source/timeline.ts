// Draws when operations run: a row for each thread block or stream. Only what is visible is drawn, and operations that are
// narrower than a pixel are drawn together, so that a frame costs the same for any number of operations.
import { axisTop } from "d3-axis";
import { scaleLinear, type ScaleLinear } from "d3-scale";
import { select, type Selection } from "d3-selection";
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import { Kind, type Track, type View, kinds } from "./model";
import { drawPattern, kindHeight, kindTop, theme } from "./theme";
import { timeWords } from "./words";

const gutter = 148;
const axisHeight = 40;
/** Gives the rows of pixels that an operation narrower than a pixel has in the image of all such operations. */
const imageRows = 10;
const labelFrom = 34;
const mostEdges = 200;

export interface Marked {
  view: number;
  op: number;
  mark: string;
}

export interface Hit {
  view: number;
  op: number;
  track: Track;
  /** Counts the operations that share the pixel. */
  together: number;
}

interface Panel {
  view: View;
  shown: Track[];
  base: ScaleLinear<number, number>;
  /** `from` is the time at the left edge, and `to` the time at the right edge. */
  from: number;
  to: number;
  top: number;
  height: number;
  rowHeight: number;
  scroll: number;
  axis: Selection<SVGGElement, unknown, null, undefined>;
  matches?: Uint8Array;
  matchSums: Map<string, Uint32Array>;
}

export class Timeline {
  readonly canvas = document.createElement("canvas");
  private readonly context: CanvasRenderingContext2D;
  private readonly image = document.createElement("canvas");
  private readonly panels: Panel[];
  private readonly behaviour: ZoomBehavior<HTMLCanvasElement, unknown>;
  private readonly overlay: Selection<SVGSVGElement, unknown, null, undefined>;
  private transform: ZoomTransform = zoomIdentity;
  private width = 0;
  private height = 0;
  private pending = false;
  private hovered?: Hit;
  private chosen?: { view: number; op: number };
  marks: Marked[] = [];
  showPath = true;
  /** Lists the milliseconds that each of the last frames took to draw. */
  readonly drawTimes: number[] = [];

  constructor(
    private readonly host: HTMLElement,
    views: View[],
    private readonly on: {
      select(view: number, op: number): void;
      hover(hit: Hit | undefined, x: number, y: number): void;
    },
  ) {
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    host.append(this.canvas);
    this.context = this.canvas.getContext("2d")!;
    this.overlay = select(host).append("svg").attr("class", "axes").attr("aria-hidden", "true");
    this.panels = views.map((view) => ({
      view,
      shown: view.tracks,
      base: scaleLinear(),
      from: 0,
      to: 1,
      top: 0,
      height: 0,
      rowHeight: 22,
      scroll: 0,
      axis: this.overlay.append("g").attr("class", "axis"),
      matchSums: new Map(),
    }));
    this.behaviour = zoom<HTMLCanvasElement, unknown>()
      .filter((event: Event) => {
        const wheel = event instanceof WheelEvent;
        if (wheel) return !event.shiftKey && this.pointIn(event).x >= gutter;
        return !(event instanceof MouseEvent) || event.button === 0;
      })
      .on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        this.transform = event.transform;
        const source = event.sourceEvent as MouseEvent | undefined;
        if (source?.type === "mousemove") this.scrollBy(-source.movementY, this.panelAt(this.pointIn(source).y));
        this.redraw();
      });
    select(this.canvas).call(this.behaviour).on("dblclick.zoom", null);
    this.canvas.addEventListener("wheel", (event) => {
      const point = this.pointIn(event);
      if (!event.shiftKey && point.x >= gutter) return;
      event.preventDefault();
      this.scrollBy(event.deltaY || event.deltaX, this.panelAt(point.y));
      this.redraw();
    });
    this.canvas.addEventListener("mousemove", (event) => {
      if (event.buttons) return;
      this.hoverAt(this.pointIn(event));
      this.on.hover(this.hovered, event.clientX, event.clientY);
    });
    this.canvas.addEventListener("mouseleave", () => {
      this.hovered = undefined;
      this.on.hover(undefined, 0, 0);
      this.redraw();
    });
    this.canvas.addEventListener("click", (event) => {
      const { x, y } = this.pointIn(event);
      const hit = this.hit(x, y);
      if (hit) this.on.select(hit.view, hit.op);
    });
    new ResizeObserver(() => this.resize()).observe(host);
    this.resize();
  }

  private pointIn(event: MouseEvent) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private panelAt(y: number): Panel | undefined {
    return this.panels.find((panel) => y >= panel.top && y < panel.top + panel.height);
  }

  /** Chooses the tracks that a view shows. */
  show(view: number, tracks: Track[]): void {
    this.panels[view].shown = tracks;
    this.resize();
  }

  shown(view: number): Track[] {
    return this.panels[view].shown;
  }

  private resize(): void {
    this.width = Math.max(this.host.clientWidth, 320);
    this.height = Math.max(this.host.clientHeight, 120);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.overlay.attr("width", this.width).attr("height", this.height);
    const last = (panel: Panel) => Math.max(...panel.shown.map((track) => track.last), 1);
    const unit = (panel: Panel) => panel.shown[0]?.steps;
    const alike = this.panels.every((panel) => unit(panel) === unit(this.panels[0]));
    const common = Math.max(...this.panels.map(last), 1);
    const each = this.height / this.panels.length;
    this.panels.forEach((panel, at) => {
      panel.top = at * each;
      panel.height = each;
      const room = each - axisHeight - 6;
      const [least, most] = panel.shown.length > 1 ? [36, 60] : [18, 36];
      panel.rowHeight = Math.min(most, Math.max(least, room / Math.max(panel.view.rows.length, 1)));
      panel.base = scaleLinear()
        .domain([0, alike ? common : last(panel)])
        .range([gutter, this.width - 12]);
      this.scrollBy(0, panel);
    });
    const longest = Math.max(...this.panels.map((panel) => panel.base.domain()[1]));
    this.behaviour
      .extent([
        [gutter, 0],
        [this.width - 12, this.height],
      ])
      .translateExtent([
        [gutter, -1e9],
        [this.width - 12, 1e9],
      ])
      .scaleExtent([1, Math.max(4, (longest / (this.width - gutter)) * 60)]);
    // A new size clears the canvas, and a browser that takes a picture may show no later frame.
    this.drawNow();
  }

  private scrollBy(pixels: number, panel?: Panel): void {
    if (!panel) return;
    const most = panel.view.rows.length * panel.rowHeight - (panel.height - axisHeight - 6);
    panel.scroll = Math.max(0, Math.min(panel.scroll + pixels, most));
  }

  zoomBy(factor: number): void {
    select(this.canvas).call(this.behaviour.scaleBy, factor);
  }
  panBy(part: number): void {
    select(this.canvas).call(this.behaviour.translateBy, (-part * (this.width - gutter)) / this.transform.k, 0);
  }
  scrollRows(rows: number): void {
    for (const panel of this.panels) this.scrollBy(rows * panel.rowHeight, panel);
    this.redraw();
  }
  fit(): void {
    select(this.canvas).call(this.behaviour.transform, zoomIdentity);
  }

  /** Moves and zooms so that an operation can be seen. */
  reveal(view: number, op: number): void {
    const panel = this.panels[view];
    const track = panel.shown.find((one) => !Number.isNaN(one.begin[op]));
    const row = panel.view.rowOf[op];
    const room = panel.height - axisHeight - 6;
    const y = row * panel.rowHeight - panel.scroll;
    if (y < 0 || y + panel.rowHeight > room) this.scrollBy(y - room / 2, panel);
    if (track) {
      const begin = track.begin[op];
      const length = Math.max(track.end[op] - begin, track.last * 1e-7);
      const base = panel.base;
      const wide = (base(length) - base(0)) * this.transform.k;
      const most = this.behaviour.scaleExtent()[1];
      const room = this.width - gutter;
      let k = this.transform.k;
      if (wide < 6) k = Math.min(most, (k * 48) / Math.max(wide, 1e-9));
      if (wide > room * 0.9) k = Math.max(1, (k * room * 0.5) / wide);
      const middle = base(begin + length / 2);
      const at = middle * this.transform.k + this.transform.x;
      if (k !== this.transform.k || at < gutter + 20 || at > this.width - 40) {
        const target = zoomIdentity.translate((gutter + this.width) / 2 - middle * k, 0).scale(k);
        const least = (this.width - 12) * (1 - k);
        const x = Math.min(gutter * (1 - k), Math.max(target.x, least));
        select(this.canvas).call(this.behaviour.transform, zoomIdentity.translate(x, 0).scale(k));
      }
    }
    this.redraw();
  }

  choose(view: number, op: number): void {
    this.chosen = op < 0 ? undefined : { view, op };
    this.redraw();
  }

  /** Marks the operations of a view for which `matches` is not 0. */
  mark(view: number, matches?: Uint8Array): void {
    const panel = this.panels[view];
    panel.matches = matches;
    panel.matchSums.clear();
    if (matches) {
      for (const track of panel.view.tracks) {
        const sums = new Uint32Array(track.order.length + 1);
        for (let at = 0; at < track.order.length; ++at) sums[at + 1] = sums[at] + matches[track.order[at]];
        panel.matchSums.set(track.key, sums);
      }
    }
    this.redraw();
  }

  redraw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.drawNow();
    });
  }

  private drawNow(): void {
    const start = performance.now();
    this.draw();
    this.drawTimes.push(performance.now() - start);
    if (this.drawTimes.length > 240) this.drawTimes.shift();
  }

  /** Returns the middle of an operation in the window, and its size; undefined if it is out of sight. */
  placeOf(view: number, op: number): { x: number; y: number; width: number; height: number } | undefined {
    const panel = this.panels[view];
    const box = this.canvas.getBoundingClientRect();
    for (let at = 0; at < panel.shown.length; ++at) {
      const place = this.boxOf(panel, at, op);
      if (!place) continue;
      const x0 = Math.max(place.x, gutter);
      const x1 = Math.min(place.x + place.width, this.width);
      return { x: box.left + (x0 + x1) / 2, y: box.top + place.y + place.height / 2, width: place.width, height: place.height };
    }
    return undefined;
  }

  private xOf(panel: Panel, time: number): number {
    return gutter + ((time - panel.from) * (this.width - 12 - gutter)) / (panel.to - panel.from);
  }

  /** Returns the vertical place of a track's row. */
  private lineOf(panel: Panel, row: number, track: number): { y: number; height: number } {
    const y = panel.top + axisHeight + row * panel.rowHeight - panel.scroll;
    const inner = panel.rowHeight - 6;
    const each = inner / panel.shown.length;
    return { y: y + 3 + track * each, height: panel.shown.length > 1 ? each - 3 : each };
  }

  private boxOf(panel: Panel, track: number, op: number) {
    const of = panel.shown[track];
    if (!of || Number.isNaN(of.begin[op])) return undefined;
    const line = this.lineOf(panel, panel.view.rowOf[op], track);
    const x = this.xOf(panel, of.begin[op]);
    return { x, width: Math.max(this.xOf(panel, of.end[op]) - x, 1), ...line };
  }

  /** Returns the operation at a point of the canvas. */
  hit(x: number, y: number): Hit | undefined {
    if (x < gutter) return undefined;
    const panel = this.panelAt(y);
    if (!panel || y < panel.top + axisHeight) return undefined;
    const row = Math.floor((y - panel.top - axisHeight + panel.scroll) / panel.rowHeight);
    if (row < 0 || row >= panel.view.rows.length) return undefined;
    const inner = y - (panel.top + axisHeight + row * panel.rowHeight - panel.scroll) - 3;
    const line = Math.floor((inner / (panel.rowHeight - 6)) * panel.shown.length);
    const track = panel.shown[Math.max(0, Math.min(line, panel.shown.length - 1))];
    if (!track) return undefined;
    const perPixel = (panel.to - panel.from) / (this.width - 12 - gutter);
    const time = panel.from + (x - gutter) * perPixel;
    const near = 1.5 * perPixel;
    let at = track.firstAfter(row, time - near);
    let best = -1;
    let together = 0;
    for (const end = track.first[row + 1]; at < end; ++at) {
      const op = track.order[at];
      if (track.begin[op] > time + near) break;
      ++together;
      const better = best < 0 || distance(track, op, time) < distance(track, best, time);
      if (better && together < 4096) best = op;
    }
    if (best < 0) return undefined;
    return { view: this.panels.indexOf(panel), op: best, track, together };
  }

  private hoverAt(point: { x: number; y: number }): void {
    const before = this.hovered?.op;
    this.hovered = this.hit(point.x, point.y);
    if (before !== this.hovered?.op) this.redraw();
  }

  private draw(): void {
    const ratio = window.devicePixelRatio || 1;
    const context = this.context;
    const colours = theme();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, this.width, this.height);
    for (const panel of this.panels) {
      const scale = this.transform.rescaleX(panel.base);
      [panel.from, panel.to] = scale.domain();
      const steps = panel.shown[0]?.steps ?? false;
      const axis = axisTop(scale).ticks(Math.max(2, Math.floor(this.width / 130))).tickSizeOuter(0);
      if (steps) axis.tickFormat((value) => (Number.isInteger(+value) ? String(value) : ""));
      else axis.tickFormat((value) => timeWords(+value));
      panel.axis.attr("transform", `translate(0,${panel.top + axisHeight - 2})`).call(axis);
      this.drawPanel(panel);
    }
  }

  private drawPanel(panel: Panel): void {
    const context = this.context;
    const colours = theme();
    const top = panel.top + axisHeight;
    const bottom = panel.top + panel.height;
    const firstRow = Math.max(0, Math.floor(panel.scroll / panel.rowHeight));
    const lastRow = Math.min(panel.view.rows.length - 1, Math.floor((panel.scroll + bottom - top) / panel.rowHeight));
    context.fillStyle = colours.ink;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillText(this.titleOf(panel), 8, panel.top + 9, this.width - 16);
    if (!panel.shown.length || !panel.view.count) {
      context.fillText("There are no operations to show.", gutter, top + 20);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(0, top, this.width, bottom - top);
    context.clip();
    this.drawRows(panel, firstRow, lastRow);
    context.beginPath();
    context.rect(gutter, top, this.width - gutter, bottom - top);
    context.clip();
    this.drawOperations(panel, firstRow, lastRow);
    if (this.showPath) this.drawPath(panel);
    this.drawMarks(panel);
    context.restore();
  }

  private titleOf(panel: Panel): string {
    const what = panel.shown.map((track) => track.title);
    return `${panel.view.raw.name}: ${panel.view.raw.headline}${what.length ? ` (${what.join("; ")})` : ""}`;
  }

  private drawRows(panel: Panel, firstRow: number, lastRow: number): void {
    const context = this.context;
    const colours = theme();
    context.font = "11px system-ui, sans-serif";
    for (let row = firstRow; row <= lastRow; ++row) {
      const y = panel.top + axisHeight + row * panel.rowHeight - panel.scroll;
      const { rank } = panel.view.rows[row];
      if (rank % 2) {
        context.fillStyle = colours.faint;
        context.fillRect(0, y, this.width, panel.rowHeight);
      }
      if (row && panel.view.rows[row - 1].rank !== rank) {
        context.fillStyle = colours.line;
        context.fillRect(0, y, this.width, 1);
      }
      context.fillStyle = colours.ink;
      context.fillText(panel.view.rowName(row), 8, y + panel.rowHeight / 2, gutter - 16);
      if (panel.shown.length > 1) {
        context.globalAlpha = 0.75;
        panel.shown.forEach((track, at) => {
          const line = this.lineOf(panel, row, at);
          context.textAlign = "right";
          context.fillText(track.key === "measured" ? "m" : "p", gutter - 4, line.y + line.height / 2);
          context.textAlign = "left";
        });
        context.globalAlpha = 1;
      }
    }
  }

  private drawOperations(panel: Panel, firstRow: number, lastRow: number): void {
    const columns = Math.ceil(this.width - gutter);
    const lines = (lastRow - firstRow + 1) * panel.shown.length;
    if (lines <= 0) return;
    if (this.image.width < columns || this.image.height < lines * imageRows) {
      this.image.width = Math.max(this.image.width, columns);
      this.image.height = Math.max(this.image.height, lines * imageRows);
    }
    const pixels = new ImageData(columns, lines * imageRows);
    const words = new Uint32Array(pixels.data.buffer);
    const wide: number[][] = Array.from({ length: kinds }, () => []); // x, width, row, track and position in order, by kind
    const ticks: number[] = []; // x, y of matches narrower than a pixel
    const used = new Uint8Array(lines);
    for (let row = firstRow; row <= lastRow; ++row) {
      panel.shown.forEach((track, number) => {
        const line = (row - firstRow) * panel.shown.length + number;
        if (this.collect(panel, track, number, row, line, columns, words, wide, ticks)) used[line] = 1;
      });
    }
    if (used.includes(1)) {
      this.image.getContext("2d")!.putImageData(pixels, 0, 0);
      this.context.imageSmoothingEnabled = false;
      for (let line = 0; line < lines; ++line) {
        if (!used[line]) continue;
        const place = this.lineOf(panel, firstRow + Math.floor(line / panel.shown.length), line % panel.shown.length);
        this.context.drawImage(this.image, 0, line * imageRows, columns, imageRows, gutter, place.y, columns, place.height);
      }
    }
    for (const kind of [Kind.other, Kind.moves, Kind.computes, Kind.waits, Kind.signals]) this.drawWide(panel, kind, wide[kind]);
    const context = this.context;
    context.fillStyle = theme().mark;
    for (let at = 0; at < ticks.length; at += 2) context.fillRect(ticks[at], ticks[at + 1] - 2, 2, 5);
  }

  /** Sorts the visible operations of a line, which is a track of a row, into those that have a box and those that share a pixel. */
  private collect(
    panel: Panel,
    track: Track,
    number: number,
    row: number,
    line: number,
    columns: number,
    words: Uint32Array,
    wide: number[][],
    ticks: number[],
  ): boolean {
    const { begin, end, order, sums } = track;
    const perTime = (this.width - 12 - gutter) / (panel.to - panel.from);
    const last = track.first[row + 1];
    const matchSums = panel.matchSums.get(track.key);
    const place = this.lineOf(panel, row, number);
    const pixels = theme().pixels;
    let narrow = false;
    let at = track.firstAfter(row, panel.from);
    while (at < last) {
      const op = order[at];
      if (begin[op] > panel.to) break;
      const x = (begin[op] - panel.from) * perTime;
      const width = (end[op] - begin[op]) * perTime;
      if (width >= 2) {
        wide[panel.view.kindOf(op)].push(x, width, row, number, op);
        ++at;
        continue;
      }
      // All operations that end within this column of pixels are drawn as the kind that takes most of their time.
      const column = Math.max(0, Math.floor(x));
      const until = panel.from + (column + 1) / perTime;
      let next = at + 1;
      if (next < last && end[order[next]] <= until) {
        let stride = 1;
        while (next + stride < last && end[order[next + stride]] <= until) {
          next += stride;
          stride *= 2;
        }
        next = track.firstAfter(row, until, next);
      }
      let kind = panel.view.kindOf(op);
      if (next > at + 1) {
        let most = -1;
        for (let k = 0; k < kinds; ++k) {
          const time = sums[k][next] - sums[k][at];
          if (time > most) {
            most = time;
            kind = k;
          }
        }
      }
      if (column < columns) {
        narrow = true;
        const from = Math.round(kindTop[kind] * imageRows);
        const to = from + Math.max(1, Math.round(kindHeight[kind] * imageRows));
        for (let y = from; y < to; ++y) words[(line * imageRows + y) * columns + column] = pixels[kind];
        if (matchSums && matchSums[next] > matchSums[at]) ticks.push(gutter + column, place.y);
      }
      at = next;
    }
    return narrow;
  }

  private drawWide(panel: Panel, kind: Kind, list: number[]): void {
    if (!list.length) return;
    const context = this.context;
    const colours = theme();
    const boxes: [number, number, number, number, number, number][] = [];
    context.beginPath();
    for (let at = 0; at < list.length; at += 5) {
      const line = this.lineOf(panel, list[at + 2], list[at + 3]);
      const x = Math.max(gutter + list[at], gutter - 2);
      const right = Math.min(gutter + list[at] + list[at + 1], this.width + 2);
      const y = line.y + kindTop[kind] * line.height;
      const height = kindHeight[kind] * line.height;
      const width = Math.max(right - x - (right - x > 3 ? 1 : 0), 1);
      context.rect(x, y, width, height);
      boxes.push([x, y, width, height, list[at + 4], list[at + 3]]);
    }
    context.fillStyle = colours.kinds[kind];
    context.fill();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [x, y, width, height, op, number] of boxes) {
      drawPattern(context, kind, x, y, width, height);
      const both = panel.shown.length > 1 && panel.shown[number].key === "measured";
      const taken = both ? this.drawGap(panel, op, x, y, width, height) : 0;
      if (width - taken > labelFrom && height > 8) this.drawLabel(panel, op, kind, x, y, width - taken, height);
      if (taken) this.drawGapWords(panel, op, x + width, y + height / 2);
      if (panel.matches?.[op]) {
        context.strokeStyle = colours.mark;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, width - 2, height - 2);
        context.fillStyle = colours.mark;
        context.fillRect(x, y - 3, Math.min(width, 8), 3);
      }
    }
  }

  private drawLabel(panel: Panel, op: number, kind: Kind, x: number, y: number, width: number, height: number): void {
    const context = this.context;
    const room = Math.floor((width - 6) / 6);
    const whole = panel.view.textOf(op);
    // The channel is in parentheses.
    const text = whole.length <= room ? whole : whole.replace(/ \([^()]*\)$/, "");
    const label = text.length <= room ? text : room < 12 ? panel.view.nameOf(op).slice(0, room) : `${text.slice(0, room - 1)}…`;
    const colours = theme();
    if (kind === Kind.waits) {
      // The pattern behind the label would make it hard to read.
      context.fillStyle = colours.kinds[kind];
      context.fillRect(x + 2, y + 1, Math.min(width - 4, label.length * 6 + 4), height - 2);
    }
    context.fillStyle = kind === Kind.other ? colours.ink : colours.kindInk[kind];
    context.fillText(label, x + 4, y + height / 2, width - 6);
  }

  /** Returns how much longer a measured operation took than predicted; NaN if that is not known. */
  private gapOf(panel: Panel, op: number): number {
    const predicted = panel.shown.find((track) => track.key === "predicted");
    const measured = panel.shown.find((track) => track.key === "measured");
    if (!predicted || !measured) return NaN;
    return measured.end[op] - measured.begin[op] - (predicted.end[op] - predicted.begin[op]);
  }

  /** Underlines the gap, and returns how much of the width its words take. */
  private drawGap(panel: Panel, op: number, x: number, y: number, width: number, height: number): number {
    const gap = this.gapOf(panel, op);
    if (Number.isNaN(gap)) return 0;
    const measured = panel.shown.find((track) => track.key === "measured")!;
    const part = Math.min(1, Math.abs(gap) / Math.max(measured.end[op] - measured.begin[op], 1));
    this.context.fillStyle = gap > 0 ? theme().slower : theme().faster;
    this.context.fillRect(x, y + height + 1, Math.max(width * part, 1), 3);
    return width > 150 ? 66 : 0;
  }

  private drawGapWords(panel: Panel, op: number, right: number, middle: number): void {
    const gap = this.gapOf(panel, op);
    const context = this.context;
    const words = `${gap > 0 ? "+" : "−"}${timeWords(Math.abs(gap))}`;
    context.textAlign = "right";
    context.font = "10px system-ui, sans-serif";
    const room = context.measureText(words).width;
    context.fillStyle = theme().paper;
    context.fillRect(right - room - 6, middle - 6, room + 4, 12);
    context.fillStyle = gap > 0 ? theme().slower : theme().faster;
    context.fillText(words, right - 4, middle);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
  }

  /** Underlines the operations on the critical path of the profile. */
  private drawPath(panel: Panel): void {
    const context = this.context;
    panel.shown.forEach((track, number) => {
      const profile = panel.view.raw.profiles[track.key];
      if (!profile) return;
      context.fillStyle = theme().ink;
      for (const stretch of profile.path) {
        const start = track.launchStart(stretch.rank);
        if (stretch.to + start < panel.from || stretch.from + start > panel.to) continue;
        const row = rowAt(panel.view, stretch.rank, stretch.block);
        if (row < 0) continue;
        const line = this.lineOf(panel, row, number);
        const x = this.xOf(panel, stretch.from + start);
        context.fillRect(x, line.y + line.height, Math.max(this.xOf(panel, stretch.to + start) - x, 1), 2);
      }
    });
  }

  private drawMarks(panel: Panel): void {
    const number = this.panels.indexOf(panel);
    const colours = theme();
    const context = this.context;
    const shown = this.hovered?.view === number ? this.hovered.op : undefined;
    const chosen = this.chosen?.view === number ? this.chosen.op : undefined;
    for (let track = 0; track < panel.shown.length; ++track) {
      for (const op of new Set([shown, chosen])) {
        if (op === undefined) continue;
        this.drawEdges(panel, track, op);
        const box = this.boxOf(panel, track, op);
        if (!box) continue;
        context.strokeStyle = colours.ink;
        context.lineWidth = op === chosen ? 2.5 : 1.2;
        context.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
      }
      for (const { view, op, mark } of this.marks) {
        const box = view === number ? this.boxOf(panel, track, op) : undefined;
        if (!box) continue;
        const x = box.x + Math.min(box.width / 2, 10);
        context.strokeStyle = context.fillStyle = colours.slower;
        context.lineWidth = 2;
        context.strokeRect(box.x, box.y, Math.max(box.width, 3), box.height);
        context.beginPath();
        context.arc(x, box.y + 2, 8, 0, 2 * Math.PI);
        context.fill();
        context.fillStyle = colours.paper;
        context.font = "bold 11px system-ui, sans-serif";
        context.textAlign = "center";
        context.fillText(mark, x, box.y + 2);
        context.textAlign = "left";
      }
    }
  }

  /** Draws an arrow from each operation that `op` waits for, and dashed ones to those that wait for it. */
  private drawEdges(panel: Panel, track: number, op: number): void {
    const arrow = (from: number, to: number, dashed: boolean) => {
      const a = this.boxOf(panel, track, from);
      const b = this.boxOf(panel, track, to);
      if (!a || !b) return;
      const context = this.context;
      const x0 = a.x + a.width;
      const y0 = a.y + a.height / 2;
      const x1 = b.x + b.width;
      const y1 = b.y + b.height / 2;
      const bend = Math.max(20, Math.abs(x1 - x0) / 3);
      context.strokeStyle = context.fillStyle = theme().mark;
      context.lineWidth = 1.6;
      context.setLineDash(dashed ? [5, 4] : []);
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 + bend, y1, x1 + 5, y1);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 + 7, y1 - 4);
      context.lineTo(x1 + 7, y1 + 4);
      context.fill();
    };
    for (const other of panel.view.awaits(op).subarray(0, mostEdges)) arrow(other, op, false);
    for (const other of panel.view.awaitedBy(op).subarray(0, mostEdges)) arrow(op, other, true);
  }
}

function distance(track: Track, op: number, time: number): number {
  if (time < track.begin[op]) return track.begin[op] - time;
  return Math.max(0, time - track.end[op]);
}

const rowTables = new WeakMap<View, Map<number, number>>();
/** Returns the row of a rank's thread block; -1 if there is none. */
function rowAt(view: View, rank: number, block: number): number {
  let table = rowTables.get(view);
  if (!table) {
    table = new Map();
    view.rows.forEach((row, at) => {
      if (!table!.has(row.rank)) table!.set(row.rank, at);
    });
    rowTables.set(view, table);
  }
  const first = table.get(rank);
  if (first === undefined) return -1;
  const row = first + block;
  return row < view.rows.length && view.rows[row].rank === rank ? row : -1;
}
