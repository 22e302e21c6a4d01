// Shows how chunks move over the ranks, as an animation with a slider.
import { Chunks } from "./chunks";
import { bufferNames, type Track, type View } from "./model";
import { theme } from "./theme";
import { bytesWords, element, timeWords } from "./words";

const mostCells = 64;
const mostArrows = 256;
const playSeconds = 8;

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Cell extends Box {
  rank: number;
  buffer: number;
  from: number;
  to: number;
}

export class Flow {
  private readonly canvas = element("canvas");
  private readonly slider = element("input", "slider");
  private readonly clock = element("output", "clock");
  private readonly play = element("button", "play", "Play");
  private readonly now = element("ol", "now");
  private readonly tip = element("p", "flow-tip");
  private chunks?: Chunks;
  private track?: Track;
  private time = 0;
  private playing = 0;
  private cells: Cell[] = [];
  private boxes: Box[] = [];

  constructor(
    host: HTMLElement,
    private readonly view: View,
    private readonly select: (op: number) => void,
  ) {
    const problem = this.problem();
    host.append(element("h2", "", `How the chunks of ${view.raw.name} move`));
    if (problem) {
      host.append(element("p", "empty", problem));
      return;
    }
    this.track = view.tracks[0];
    const controls = element("div", "controls");
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.max = "1000";
    this.slider.value = "0";
    this.slider.setAttribute("aria-label", "Time");
    controls.append(this.play, this.slider, this.clock);
    if (view.tracks.length > 1) {
      const choice = element("select");
      choice.setAttribute("aria-label", "Times");
      for (const track of view.tracks) choice.append(new Option(track.title, track.key));
      choice.addEventListener("change", () => {
        this.track = view.tracks.find((track) => track.key === choice.value);
        this.chunks = undefined;
        this.goTo(this.time);
      });
      controls.append(choice);
    }
    const legend = element(
      "p",
      "legend",
      "A box is a rank, a cell is a chunk. A cell says whose input it holds: the rank's number or, for a combination, how many " +
        "ranks' inputs, which its filling also shows. An arrow is an operation that moves data to another rank now.",
    );
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "Ranks and their chunks at the chosen time");
    this.now.setAttribute("aria-label", "Operations that move data now");
    const area = element("div", "flow-area");
    area.append(this.canvas);
    host.append(controls, legend, area, this.tip, this.now);
    this.slider.addEventListener("input", () => {
      this.stop();
      this.goTo((Number(this.slider.value) / 1000) * this.track!.last);
    });
    this.play.addEventListener("click", () => this.toggle());
    this.canvas.addEventListener("mousemove", (event) => this.tell(event));
    new ResizeObserver(() => this.draw()).observe(area);
    this.goTo(0);
  }

  private problem(): string {
    if (this.view.kind !== "plan") return "The flow of chunks is shown for plans of thread blocks only.";
    if (!this.view.count) return "The plan has no operations.";
    if (!this.view.raw.chunks.some((of) => of[0] + of[1] + of[2] > 0)) return "The plan has no chunks.";
    return "";
  }

  /** Starts the animation, or stops it. */
  toggle(): void {
    if (!this.track) return;
    if (this.playing) return this.stop();
    if (this.time >= this.track.last) this.time = 0;
    this.play.textContent = "Pause";
    let before = performance.now();
    const step = (at: number) => {
      this.goTo(Math.min(this.time + ((at - before) / 1000 / playSeconds) * this.track!.last, this.track!.last));
      before = at;
      if (this.time >= this.track!.last) this.stop();
      else if (this.playing) this.playing = requestAnimationFrame(step);
    };
    this.playing = requestAnimationFrame(step);
  }

  private stop(): void {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.play.textContent = "Play";
  }

  /** Goes to the beginning or the end of the nearest operation, forward or back. */
  step(forward: boolean): void {
    if (!this.track) return;
    const { begin, end, order } = this.track;
    let best = forward ? this.track.last : 0;
    for (const op of order) {
      for (const time of [begin[op], end[op]]) {
        if (forward ? time > this.time && time < best : time < this.time && time > best) best = time;
      }
    }
    this.stop();
    this.goTo(best);
  }

  goTo(time: number): void {
    if (!this.track) return;
    this.time = time;
    // Chunks are followed only when someone looks: it takes a while for large plans.
    this.chunks ??= new Chunks(this.view, this.track);
    this.chunks.goTo(time);
    this.slider.value = String((time / this.track.last) * 1000);
    const words = this.track.steps ? `step ${Math.floor(time)}` : timeWords(time);
    this.clock.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    this.draw();
    this.list();
  }

  private list(): void {
    const running = this.chunks!.running(this.time, 9);
    this.now.replaceChildren();
    if (!running.length) this.now.append(element("li", "", "Nothing moves data now."));
    for (const op of running.slice(0, 8)) {
      const item = element("li");
      const button = element("button", "link", `${this.view.rowName(this.view.rowOf[op])}: ${this.view.textOf(op)}`);
      button.addEventListener("click", () => this.select(op));
      item.append(button);
      this.now.append(item);
    }
    if (running.length > 8) this.now.append(element("li", "", "and more"));
  }

  /** Gives each rank a box. The boxes form a circle for few ranks, else a grid. */
  private place(width: number): number {
    const ranks = this.view.ranks();
    const circle = ranks > 2 && ranks <= 8;
    const across = circle ? 0 : Math.min(ranks, Math.max(1, Math.floor(width / 190)));
    const boxWidth = circle ? Math.min(270, width / (ranks > 4 ? 4.4 : 3.4)) : width / across - 26;
    const boxHeight = 86;
    this.boxes = [];
    if (circle) {
      const height = 130 + ranks * 44;
      for (let rank = 0; rank < ranks; ++rank) {
        const angle = (2 * Math.PI * rank) / ranks - Math.PI / 2;
        this.boxes.push({
          x: width / 2 + (width / 2 - boxWidth / 2 - 8) * Math.cos(angle) - boxWidth / 2,
          y: height / 2 + (height / 2 - boxHeight / 2 - 6) * Math.sin(angle) - boxHeight / 2,
          width: boxWidth,
          height: boxHeight,
        });
      }
      return height;
    }
    for (let rank = 0; rank < ranks; ++rank) {
      this.boxes.push({
        x: 10 + (rank % across) * (boxWidth + 26),
        y: 8 + Math.floor(rank / across) * (boxHeight + 34),
        width: boxWidth,
        height: boxHeight,
      });
    }
    return 16 + Math.ceil(ranks / across) * (boxHeight + 34);
  }

  draw(): void {
    const area = this.canvas.parentElement;
    if (!area || !this.chunks || !area.clientWidth) return;
    const width = area.clientWidth;
    const height = this.place(width);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme().paper;
    context.fillRect(0, 0, width, height);
    this.cells = [];
    this.boxes.forEach((box, rank) => this.drawRank(context, box, rank));
    this.drawArrows(context);
  }

  private drawRank(context: CanvasRenderingContext2D, box: Box, rank: number): void {
    const colours = theme();
    context.strokeStyle = colours.line;
    context.lineWidth = 1.5;
    context.strokeRect(box.x, box.y, box.width, box.height);
    context.fillStyle = colours.ink;
    context.font = "bold 12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillText(`rank ${rank}`, box.x + 6, box.y + 10);
    this.view.raw.chunks[rank].forEach((chunks, buffer) => {
      const y = box.y + 20 + buffer * 21;
      context.fillStyle = colours.ink;
      context.font = "10px system-ui, sans-serif";
      context.fillText(bufferNames[buffer], box.x + 6, y + 9);
      const cells = Math.min(chunks, mostCells);
      const room = box.width - 54;
      for (let at = 0; at < cells; ++at) {
        const from = Math.floor((at * chunks) / cells);
        const to = Math.floor(((at + 1) * chunks) / cells);
        this.drawCell(context, {
          x: box.x + 48 + (at * room) / cells,
          y,
          width: room / cells - (room / cells > 4 ? 1.5 : 0),
          height: 17,
          rank,
          buffer,
          from,
          to,
        });
      }
    });
  }

  private drawCell(context: CanvasRenderingContext2D, cell: Cell): void {
    this.cells.push(cell);
    const colours = theme();
    const ranks = Math.max(this.view.ranks(), 1);
    let held: number[] = [];
    for (let chunk = cell.from; chunk < cell.to; ++chunk) {
      const of = this.chunks!.holds(cell.rank, cell.buffer, chunk);
      if (of.length > held.length) held = of;
    }
    const { x, y, width, height } = cell;
    const part = held.length / ranks;
    context.fillStyle = colours.kinds[0];
    context.globalAlpha = 0.85;
    context.fillRect(x, y + height * (1 - part), width, height * part);
    context.globalAlpha = 1;
    if (width > 4) {
      context.strokeStyle = colours.line;
      context.lineWidth = 1;
      context.strokeRect(x, y, width, height);
    }
    if (!held.length || width < 11) return;
    context.fillStyle = part > 0.6 ? colours.kindInk[0] : colours.ink;
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(held.length === 1 ? String(held[0]) : width > 17 ? `Σ${held.length}` : String(held.length), x + width / 2, y + height / 2);
    context.textAlign = "left";
  }

  private drawArrows(context: CanvasRenderingContext2D): void {
    const colours = theme();
    for (const op of this.chunks!.running(this.time, mostArrows)) {
      const home = this.view.rows[this.view.rowOf[op]].rank;
      const length = this.track!.end[op] - this.track!.begin[op];
      const part = length > 0 ? (this.time - this.track!.begin[op]) / length : 1;
      const ends = new Map<string, [number, number]>();
      const all = this.view.accesses(op);
      for (const access of all) {
        if (access.rank !== home) ends.set(`${access.writes}${access.rank}`, access.writes ? [home, access.rank] : [access.rank, home]);
      }
      if (!ends.size) {
        const box = this.boxes[home];
        context.strokeStyle = colours.mark;
        context.lineWidth = 3;
        context.strokeRect(box.x - 3, box.y - 3, box.width + 6, box.height + 6);
      }
      for (const [from, to] of ends.values()) this.drawArrow(context, from, to, part, bytesWords(this.view.bytesOf(op)));
    }
  }

  private drawArrow(context: CanvasRenderingContext2D, from: number, to: number, part: number, label: string): void {
    const colours = theme();
    const a = this.boxes[from];
    const b = this.boxes[to];
    if (!a || !b) return;
    const [x0, y0] = edge(a, b);
    const [x1, y1] = edge(b, a);
    const angle = Math.atan2(y1 - y0, x1 - x0);
    // Arrows of both directions run beside each other.
    const dx = -Math.sin(angle) * 6;
    const dy = Math.cos(angle) * 6;
    context.strokeStyle = context.fillStyle = colours.mark;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x0 + dx, y0 + dy);
    context.lineTo(x1 + dx, y1 + dy);
    context.stroke();
    context.beginPath();
    context.moveTo(x1 + dx, y1 + dy);
    context.lineTo(x1 + dx - 10 * Math.cos(angle - 0.4), y1 + dy - 10 * Math.sin(angle - 0.4));
    context.lineTo(x1 + dx - 10 * Math.cos(angle + 0.4), y1 + dy - 10 * Math.sin(angle + 0.4));
    context.fill();
    const x = x0 + (x1 - x0) * part + dx;
    const y = y0 + (y1 - y0) * part + dy;
    context.fillStyle = colours.kinds[0];
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    context.fillRect(x - 6, y - 6, 12, 12);
    context.strokeRect(x - 6, y - 6, 12, 12);
    context.fillStyle = colours.ink;
    context.font = "10px system-ui, sans-serif";
    context.fillText(label, x + 10, y - 8);
  }

  /** Returns the cells with their places in the canvas, and the contents of their first chunks. */
  shownCells() {
    return this.cells.map((cell) => ({ ...cell, holds: this.chunks!.holds(cell.rank, cell.buffer, cell.from) }));
  }

  private tell(event: MouseEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const cell = this.cells.find((of) => x >= of.x && x <= of.x + of.width && y >= of.y && y <= of.y + of.height);
    if (!cell) {
      this.tip.textContent = "";
      return;
    }
    const held = this.chunks!.holds(cell.rank, cell.buffer, cell.from);
    const what = held.length ? `the input${held.length > 1 ? "s" : ""} of rank${held.length > 1 ? "s" : ""} ${held.join(", ")}` : "nothing yet";
    this.tip.textContent = `${bufferNames[cell.buffer]}[${cell.from}:${cell.from + 1}] of rank ${cell.rank} holds ${what}`;
  }
}

/** Returns the point at which the line between the middles of two boxes leaves the first one. */
function edge(from: Box, to: Box): [number, number] {
  const x = from.x + from.width / 2;
  const y = from.y + from.height / 2;
  const dx = to.x + to.width / 2 - x;
  const dy = to.y + to.height / 2 - y;
  const part = Math.min(Math.abs(from.width / 2 / (dx || 1e-9)), Math.abs(from.height / 2 / (dy || 1e-9)), 0.5);
  return [x + dx * part, y + dy * part];
}
