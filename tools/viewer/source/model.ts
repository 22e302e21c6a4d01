// Reads the data of the page: JSON with columns of numbers, which tools/view/picture.cpp writes.

export const enum Kind {
  moves = 0,
  waits = 1,
  signals = 2,
  other = 3,
  computes = 4,
}
/** Counts the kinds. */
export const kinds = 5;

export interface RawTimes {
  title: string;
  steps: boolean;
  gaps: string;
  lengths: string;
}

export interface Event {
  part: "context" | "culprit" | "missing";
  actor: string;
  launch: number;
  mark: string;
  text: string;
  line: string;
  op: number;
}

export interface Finding {
  check: string;
  text: string;
  line: string;
  op: number;
  notes: { text: string; line: string; op: number }[];
  help: string;
  rendered: string;
  events: Event[];
  edges: [number, number, boolean][];
  leftOut: number;
  because: string[];
  remedies: string[];
}

export interface ProfileLine {
  name: string;
  line: string;
  path: number;
  spans: number;
  total: number;
  longest: number;
  rank: number;
  block: number;
}

export interface Stretch {
  name: string;
  line: string;
  rank: number;
  block: number;
  from: number;
  to: number;
}

export interface Profile {
  launch: number;
  ns: number;
  lines: ProfileLine[];
  path: Stretch[];
}

export interface ComparedLine {
  name: string;
  line: string;
  kind: string;
  measured: number;
  predicted: number;
  blocks: number;
}

export interface Comparison {
  launch: number;
  measured: number;
  predicted: number;
  lines: ComparedLine[];
  onlyMeasured: ComparedLine[];
  onlyPredicted: ComparedLine[];
}

export interface RawView {
  kind: "plan" | "schedule" | "trace";
  name: string;
  file: string;
  headline: string;
  facts: string[];
  notes: string[];
  ranks: number;
  chunkBytes: number;
  chunks: number[][];
  oneStorage: boolean;
  rows: { rank: number; name: string; count: number }[];
  names: string[];
  kinds: Kind[];
  combining: number[];
  lines: string[];
  lineTexts: string[];
  channels: string[];
  templates: string[];
  columns: Record<
    | "name"
    | "line"
    | "channel"
    | "template"
    | "numbers"
    | "parts"
    | "awaitsCount"
    | "awaits"
    | "accessCount"
    | "accesses",
    string
  >;
  times: Record<string, RawTimes>;
  findings: Finding[];
  profiles: Record<string, Profile>;
  comparison: Comparison | null;
}

export interface RawModel {
  version: number;
  made: string;
  views: RawView[];
}

/** Returns the bytes of a column, and how many numbers they hold. */
function bytesOf(base64: string): { bytes: Uint8Array; count: number } {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; ++at) {
    const byte = text.charCodeAt(at);
    bytes[at] = byte;
    if (byte < 128) ++count;
  }
  return { bytes, count };
}

/** Calls `take` for each number of a column. Numbers of more than 31 bits are exact to 53 bits. */
function eachNumber(bytes: Uint8Array, take: (value: number, at: number) => void): void {
  let number = 0;
  for (let at = 0; at < bytes.length; ) {
    let byte = bytes[at++];
    let value = byte & 127;
    let factor = 128;
    while (byte > 127) {
      byte = bytes[at++];
      value += (byte & 127) * factor;
      factor *= 128;
    }
    take(value, number++);
  }
}

function small(base64: string): Uint32Array {
  const { bytes, count } = bytesOf(base64);
  const out = new Uint32Array(count);
  eachNumber(bytes, (value, at) => (out[at] = value));
  return out;
}

function large(base64: string): Float64Array {
  const { bytes, count } = bytesOf(base64);
  const out = new Float64Array(count);
  eachNumber(bytes, (value, at) => (out[at] = value));
  return out;
}

/** Undoes Column::add_signed(). */
const signed = (value: number) => (value % 2 ? -(value + 1) / 2 : value / 2);

/** Returns the positions at which the parts of `counts` begin. The last position is the end. */
function starts(counts: ArrayLike<number>): Uint32Array {
  const out = new Uint32Array(counts.length + 1);
  for (let at = 0; at < counts.length; ++at) out[at + 1] = out[at] + counts[at];
  return out;
}

/** Holds the times of all operations from one source, and sums for drawing them fast. */
export class Track {
  /** Gives the begin of each operation; NaN if it has no time. */
  readonly begin: Float64Array;
  readonly end: Float64Array;
  /** Lists the operations with times, row by row, by begin. Those of row k are from first[k] to first[k + 1]. */
  readonly order: Uint32Array;
  readonly first: Uint32Array;
  /** Gives the time that the operations of each kind have taken before the one at this position of `order`. */
  readonly sums: Float64Array[];
  readonly last: number;
  /** Gives the time at which the first operation of each rank begins, by the rank's number. `start` is the first of these times. */
  readonly starts = new Map<number, number>();
  readonly start: number;
  private inStep?: Track;

  constructor(
    readonly key: string,
    readonly title: string,
    readonly steps: boolean,
    private readonly raw: RawTimes,
    private readonly view: View,
    /** Says how much earlier the operations of each rank are shown than they ran. */
    private readonly earlier?: Map<number, number>,
  ) {
    const lengths = large(raw.lengths);
    const gaps = large(raw.gaps);
    const count = view.count;
    this.begin = new Float64Array(count).fill(NaN);
    this.end = new Float64Array(count).fill(NaN);
    this.first = new Uint32Array(view.rows.length + 1);
    const order = new Uint32Array(gaps.length);
    let next = 0;
    let last = 0;
    for (let row = 0; row < view.rows.length; ++row) {
      const { rank } = view.rows[row];
      const shift = earlier?.get(rank) ?? 0;
      let before = -shift;
      let sorted = true;
      const from = next;
      for (let op = view.firstOp[row]; op < view.firstOp[row + 1]; ++op) {
        if (!lengths[op]) continue;
        const begin = before + signed(gaps[next]);
        const end = begin + lengths[op] - 1;
        if (begin < before && next > from) sorted = false;
        before = end;
        this.begin[op] = begin;
        this.end[op] = end;
        order[next++] = op;
        if (end > last) last = end;
      }
      if (!sorted) order.subarray(from, next).sort((a, b) => this.begin[a] - this.begin[b]);
      if (next > from) this.starts.set(rank, Math.min(this.starts.get(rank) ?? Infinity, this.begin[order[from]]));
      this.first[row + 1] = next;
    }
    this.order = order;
    this.last = Math.max(last, 1);
    this.start = Math.min(...this.starts.values());
    this.sums = Array.from({ length: kinds }, () => new Float64Array(next + 1));
    for (let at = 0; at < next; ++at) {
      const op = order[at];
      const kind = view.kindOf(op);
      for (let k = 0; k < kinds; ++k) this.sums[k][at + 1] = this.sums[k][at];
      this.sums[kind][at + 1] += this.end[op] - this.begin[op];
    }
  }

  /** Returns the same times, with every rank's first operation at the beginning. */
  aligned(): Track {
    this.inStep ??= new Track(this.key, this.title, this.steps, this.raw, this.view, this.starts);
    return this.inStep;
  }

  /** Returns the time at which a launch begins whose profile counts from the first operation of all ranks. */
  launchStart(rank: number): number {
    if (!this.earlier) return this.start;
    return Math.min(...this.earlier.values()) - (this.earlier.get(rank) ?? 0);
  }

  /** Returns the position in `order` of the first operation of a row that ends after `time`; the row's end if none does. */
  firstAfter(row: number, time: number, from = this.first[row]): number {
    let low = from;
    let high = this.first[row + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.end[this.order[middle]] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Holds one plan, schedule or trace. */
export class View {
  readonly kind: string;
  readonly rows: { rank: number; name: string; count: number }[];
  readonly count: number;
  /** Gives the first operation of each row. The last entry is the number of operations. */
  readonly firstOp: Uint32Array;
  readonly rowOf: Uint32Array;
  readonly tracks: Track[];

  private readonly name: Uint32Array;
  private readonly line: Uint32Array;
  private readonly channel: Uint32Array;
  private readonly template: Uint32Array;
  private texts?: { parts: string[][]; first: Uint32Array; numbers: Uint32Array };
  private readonly awaitsFirst: Uint32Array;
  private readonly awaitsList: Uint32Array;
  private awaited?: { first: Uint32Array; list: Uint32Array };
  private accessData?: { first: Uint32Array; list: Float64Array; parts: Uint32Array };

  constructor(readonly raw: RawView) {
    this.kind = raw.kind;
    this.rows = raw.rows;
    this.firstOp = starts(raw.rows.map((row) => row.count));
    this.count = this.firstOp[raw.rows.length];
    this.rowOf = new Uint32Array(this.count);
    for (let row = 0; row < raw.rows.length; ++row) this.rowOf.fill(row, this.firstOp[row], this.firstOp[row + 1]);
    this.name = small(raw.columns.name);
    this.line = small(raw.columns.line);
    this.channel = small(raw.columns.channel);
    this.template = small(raw.columns.template);
    this.awaitsFirst = starts(small(raw.columns.awaitsCount));
    const awaits = large(raw.columns.awaits);
    this.awaitsList = new Uint32Array(awaits.length);
    for (let op = 0; op < this.count; ++op)
      for (let at = this.awaitsFirst[op]; at < this.awaitsFirst[op + 1]; ++at) this.awaitsList[at] = op + signed(awaits[at]);
    this.tracks = Object.entries(raw.times).map(([key, times]) => new Track(key, times.title, times.steps, times, this));
  }

  ranks(): number {
    return this.raw.chunks.length || this.raw.ranks;
  }
  kindOf(op: number): Kind {
    return this.raw.kinds[this.name[op]];
  }
  nameOf(op: number): string {
    return this.raw.names[this.name[op]];
  }
  /** Returns the position of an operation's name in `raw.names`. */
  nameNumber(op: number): number {
    return this.name[op];
  }
  combines(op: number): boolean {
    return this.raw.combining[this.name[op]] === 1;
  }
  /** Returns the author's line, such as "ring.cpp:12"; "" if it is unknown. */
  lineOf(op: number): string {
    return this.line[op] ? this.raw.lines[this.line[op] - 1] : "";
  }
  lineText(op: number): string {
    return this.line[op] ? this.raw.lineTexts[this.line[op] - 1] : "";
  }
  channelOf(op: number): string {
    return this.channel[op] ? this.raw.channels[this.channel[op] - 1] : "";
  }
  rowName(row: number): string {
    return `rank ${this.rows[row].rank}, ${this.rows[row].name}`;
  }
  /** Returns the place of an operation, such as "rank 0, block 1, operation 2". */
  placeOf(op: number): string {
    const row = this.rowOf[op];
    return `${this.rowName(row)}, operation ${op - this.firstOp[row]}`;
  }

  /** Returns the operation in words. */
  textOf(op: number): string {
    if (!this.texts) {
      const parts = this.raw.templates.map((text) => text.split("\x01"));
      const first = new Uint32Array(this.count + 1);
      for (let at = 0; at < this.count; ++at) first[at + 1] = first[at] + parts[this.template[at]].length - 1;
      this.texts = { parts, first, numbers: small(this.raw.columns.numbers) };
    }
    const { parts, first, numbers } = this.texts;
    const words = parts[this.template[op]];
    let text = words[0];
    for (let at = 1; at < words.length; ++at) text += numbers[first[op] + at - 1] + words[at];
    return text;
  }

  /** Returns the operations that must come before `op` goes on. */
  awaits(op: number): Uint32Array {
    return this.awaitsList.subarray(this.awaitsFirst[op], this.awaitsFirst[op + 1]);
  }

  /** Returns the operations that go on only after `op`. */
  awaitedBy(op: number): Uint32Array {
    if (!this.awaited) {
      const counts = new Uint32Array(this.count);
      for (const other of this.awaitsList) ++counts[other];
      const first = starts(counts);
      const next = first.slice();
      const list = new Uint32Array(this.awaitsList.length);
      for (let from = 0; from < this.count; ++from) for (const other of this.awaits(from)) list[next[other]++] = from;
      this.awaited = { first, list };
    }
    return this.awaited.list.subarray(this.awaited.first[op], this.awaited.first[op + 1]);
  }

  private accessColumns() {
    this.accessData ??= {
      first: starts(small(this.raw.columns.accessCount)),
      list: large(this.raw.columns.accesses),
      parts: small(this.raw.columns.parts),
    };
    return this.accessData;
  }

  /** Returns the pieces of memory that an operation reads and writes. */
  accesses(op: number): Access[] {
    const { first, list } = this.accessColumns();
    const out: Access[] = [];
    for (let at = first[op]; at < first[op + 1]; ++at) {
      const code = list[4 * at];
      out.push({
        writes: code % 2 === 1,
        buffer: code >> 1,
        rank: list[4 * at + 1],
        index: list[4 * at + 2],
        size: list[4 * at + 3],
      });
    }
    return out;
  }

  /** Returns at most how many bytes an operation writes or, if it writes none, reads. The last chunk may be shorter. */
  bytesOf(op: number): number {
    if (!this.raw.chunkBytes) return 0;
    const all = this.accesses(op);
    const written = all.filter((access) => access.writes);
    let chunks = 0;
    for (const access of written.length ? written : all) chunks += access.size;
    return (chunks * this.raw.chunkBytes) / this.accessColumns().parts[op];
  }
}

export interface Access {
  writes: boolean;
  rank: number;
  /** Names the buffer: 0 is the input, 1 the output, 2 scratch. */
  buffer: number;
  index: number;
  size: number;
}

export const bufferNames = ["input", "output", "scratch"];

export function readModel(text: string): { made: string; views: View[] } {
  const raw = JSON.parse(text) as RawModel;
  if (raw.version !== 1) throw new Error(`the page's data have version ${raw.version}, and its program reads version 1`);
  return { made: raw.made, views: raw.views.map((view) => new View(view)) };
}
