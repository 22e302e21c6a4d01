// Makes pictures of pages small: a PNG of 8 bits a channel becomes one with a palette of 256 colours.
import { deflateSync, inflateSync } from "node:zlib";

/** Returns the pixels of a PNG that Chromium has made, as [width, height, bytes a pixel, bytes]. */
export function decoded(png) {
  const parts = [];
  let width, height, size;
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const kind = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    if (kind === "IHDR") {
      [width, height, size] = [data.readUInt32BE(0), data.readUInt32BE(4), data[9] === 6 ? 4 : 3];
      if (data[8] !== 8 || ![2, 6].includes(data[9]) || data[12] !== 0) throw new Error("not a PNG of Chromium");
    }
    if (kind === "IDAT") parts.push(data);
    at += length + 12;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const row = width * size;
  const out = Buffer.alloc(row * height);
  for (let y = 0; y < height; ++y) {
    const filter = raw[y * (row + 1)];
    for (let x = 0; x < row; ++x) {
      const left = x >= size ? out[y * row + x - size] : 0;
      const up = y ? out[(y - 1) * row + x] : 0;
      const corner = x >= size && y ? out[(y - 1) * row + x - size] : 0;
      const guess = left + up - corner;
      const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
      const paeth = a <= b && a <= c ? left : b <= c ? up : corner;
      const add = [0, left, up, (left + up) >> 1, paeth][filter];
      out[y * row + x] = raw[y * (row + 1) + 1 + x] + add;
    }
  }
  return [width, height, size, out];
}

const table = Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; ++k) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

function chunk(kind, data) {
  const out = Buffer.alloc(data.length + 12);
  out.writeUInt32BE(data.length, 0);
  out.write(kind, 4, "latin1");
  data.copy(out, 8);
  let sum = 0xffffffff;
  for (const byte of out.subarray(4, 8 + data.length)) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
  out.writeUInt32BE((sum ^ 0xffffffff) >>> 0, 8 + data.length);
  return out;
}

/** Returns the picture with the 256 colours that are most frequent; the others become the nearest of these. */
export function withPalette(png) {
  const [width, height, size, pixels] = decoded(Buffer.from(png));
  const colourAt = (at) => (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
  const times = new Map();
  for (let at = 0; at < pixels.length; at += size) times.set(colourAt(at), (times.get(colourAt(at)) ?? 0) + 1);
  const palette = [...times].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 256).map(([colour]) => colour);
  const distance = (a, b) => ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;
  const known = new Map(palette.map((colour, at) => [colour, at]));
  for (const colour of times.keys()) {
    if (known.has(colour)) continue;
    let best = 0;
    palette.forEach((other, at) => {
      if (distance(colour, other) < distance(colour, palette[best])) best = at;
    });
    known.set(colour, best);
  }
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; ++y) for (let x = 0; x < width; ++x) rows[y * (width + 1) + 1 + x] = known.get(colourAt((y * width + x) * size));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([png.subarray(0, 8), chunk("IHDR", head), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
