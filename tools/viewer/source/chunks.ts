// Follows the chunks: it computes which ranks' inputs each chunk of each buffer holds at a time.
import type { Access, Track, View } from "./model";

/** States are kept after this many operations, so that any time is near one of them. */
const between = 2048;

export class Chunks {
  /** Lists the operations that move data, by the time at which they end. */
  private readonly moves: Uint32Array;
  private readonly ends: Float64Array;
  private readonly kept: Uint32Array[] = [];
  private readonly sets: number[][] = [[]];
  private readonly known = new Map<string, number>([["", 0]]);
  private readonly unions = new Map<number, number>();
  private readonly first: number[][];
  private readonly cells: number;
  private state: Uint32Array;
  private done = 0;

  constructor(
    readonly view: View,
    readonly track: Track,
  ) {
    let cells = 0;
    this.first = view.raw.chunks.map((of, rank) => {
      const starts = [0, 0, 0];
      const [input, output, scratch] = of;
      if (view.raw.oneStorage) {
        // The smaller of input and output is the rank's part of the larger one.
        const larger = Math.max(input, output);
        starts[0] = cells + (input < output && (rank + 1) * input <= output ? rank * input : 0);
        starts[1] = cells + (output < input && (rank + 1) * output <= input ? rank * output : 0);
        cells += larger;
      } else {
        starts[0] = cells;
        cells += input;
        starts[1] = cells;
        cells += output;
      }
      starts[2] = cells;
      cells += scratch;
      return starts;
    });
    this.cells = cells;
    const moves: number[] = [];
    for (let op = 0; op < view.count; ++op)
      if (view.kindOf(op) === 0 && !Number.isNaN(track.end[op])) moves.push(op);
    moves.sort((a, b) => track.end[a] - track.end[b] || track.begin[a] - track.begin[b] || a - b);
    this.moves = Uint32Array.from(moves);
    this.ends = Float64Array.from(moves, (op) => track.end[op]);
    this.state = this.begin();
    this.kept.push(this.state.slice());
  }

  private begin(): Uint32Array {
    const state = new Uint32Array(this.cells);
    this.view.raw.chunks.forEach(([input], rank) => {
      const own = this.intern([rank]);
      state.fill(own, this.first[rank][0], this.first[rank][0] + input);
    });
    return state;
  }

  private intern(set: number[]): number {
    const key = set.join();
    let found = this.known.get(key);
    if (found === undefined) {
      found = this.sets.length;
      this.sets.push(set);
      this.known.set(key, found);
    }
    return found;
  }

  private union(a: number, b: number): number {
    if (a === b || !b) return a;
    if (!a) return b;
    const key = Math.min(a, b) * 0x200000 + Math.max(a, b);
    let made = this.unions.get(key);
    if (made === undefined) {
      made = this.intern([...new Set([...this.sets[a], ...this.sets[b]])].sort((x, y) => x - y));
      this.unions.set(key, made);
    }
    return made;
  }

  private apply(op: number): void {
    const all = this.view.accesses(op);
    const reads = all.filter((access) => !access.writes);
    const writes = all.filter((access) => access.writes);
    if (!reads.length) return;
    const cell = (access: Access, at: number) => this.first[access.rank][access.buffer] + access.index + at;
    const value = (sources: Access[], at: number) => {
      let held = 0;
      for (const source of sources) if (at < source.size) held = this.union(held, this.state[cell(source, at)] ?? 0);
      return held;
    };
    const held: [number, number][] = [];
    writes.forEach((write, k) => {
      const sources = this.view.combines(op) ? reads : [reads.length === writes.length ? reads[k] : reads[0]];
      for (let at = 0; at < write.size; ++at) held.push([cell(write, at), value(sources, at)]);
    });
    for (const [at, what] of held) if (at < this.cells) this.state[at] = what;
  }

  /** Goes to a time: everything that has ended by then has happened. */
  goTo(time: number): void {
    let low = 0;
    let high = this.ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.ends[middle] > time) high = middle;
      else low = middle + 1;
    }
    const wanted = Math.min(Math.floor(low / between), this.kept.length - 1);
    if (low < this.done || wanted * between > this.done) {
      this.state = this.kept[wanted].slice();
      this.done = wanted * between;
    }
    while (this.done < low) {
      this.apply(this.moves[this.done++]);
      if (this.done % between === 0 && this.kept.length === this.done / between) this.kept.push(this.state.slice());
    }
  }

  /** Returns the ranks whose inputs a chunk holds, in ascending order. */
  holds(rank: number, buffer: number, chunk: number): number[] {
    return this.sets[this.state[this.first[rank][buffer] + chunk]] ?? [];
  }

  /** Returns the operations that move data at a time, but at most `most` of them. */
  running(time: number, most: number): number[] {
    const { view, track } = this;
    const found: number[] = [];
    for (let row = 0; row < view.rows.length && found.length < most; ++row) {
      const at = track.firstAfter(row, time);
      if (at >= track.first[row + 1]) continue;
      const op = track.order[at];
      if (track.begin[op] <= time && view.kindOf(op) === 0) found.push(op);
    }
    return found;
  }
}
