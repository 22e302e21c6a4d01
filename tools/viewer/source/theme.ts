// Gives the canvas the colours of the style sheet, and patterns that make kinds readable without colours.
import { Kind } from "./model";

export interface Theme {
  paper: string;
  ink: string;
  faint: string;
  line: string;
  mark: string;
  slower: string;
  faster: string;
  kinds: string[];
  kindInk: string[];
  /** Holds the colours of `kinds` as the canvas keeps pixels. */
  pixels: Uint32Array;
}

let current: Theme | undefined;

function pixelOf(colour: string): number {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function theme(): Theme {
  if (current) return current;
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const kinds = ["moves", "waits", "signals", "other", "computes"].map(get);
  current = {
    paper: get("paper"),
    ink: get("ink"),
    faint: get("faint"),
    line: get("line"),
    mark: get("mark"),
    slower: get("slower"),
    faster: get("faster"),
    kinds,
    kindInk: ["moves-ink", "waits-ink", "signals-ink", "other-ink", "computes-ink"].map(get),
    pixels: Uint32Array.from(kinds, pixelOf),
  };
  return current;
}

export function themeChanged(): void {
  current = undefined;
}

/** Gives the part of a row's height at which a kind begins, from the top. Without colour, kinds differ in height and pattern. */
export const kindTop = [0, 0.3, 0, 0.42, 0];
export const kindHeight = [1, 0.7, 0.62, 0.16, 1];

/** Draws lines, dots or edges over a box that was filled. */
export function drawPattern(
  context: CanvasRenderingContext2D,
  kind: Kind,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  if (kind === Kind.moves || kind === Kind.other || width < 5) return;
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.beginPath();
  if (kind === Kind.waits) {
    context.strokeStyle = theme().kindInk[kind];
    context.lineWidth = 0.8;
    const step = 6;
    for (let at = Math.floor((x - height) / step) * step; at < x + width; at += step) {
      context.moveTo(at, y + height);
      context.lineTo(at + height, y);
    }
    context.globalAlpha = 0.45;
    context.stroke();
  } else if (kind === Kind.computes) {
    context.fillStyle = theme().kindInk[kind];
    context.rect(x, y, width, 2);
    context.rect(x, y + height - 2, width, 2);
    context.globalAlpha = 0.6;
    context.fill();
  } else {
    context.fillStyle = theme().kindInk[kind];
    for (let at = Math.floor(x / 5) * 5; at < x + width; at += 5) context.rect(at + 1, y + height - 4, 2, 2);
    context.globalAlpha = 0.6;
    context.fill();
  }
  context.restore();
}
