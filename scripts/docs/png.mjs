// PNG files (W3C PNG, third edition) of 8 bits per channel without a palette: all that Chromium writes and that is kept here.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const RGB = 2;
const RGBA = 6;

/** @typedef {{ width: number, height: number, rgb: Uint8Array }} Picture */

/** @param {Picture} picture */
export function encodePng({ width, height, rgb }) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, RGB], 8);
  const stride = width * 3;
  const lines = Buffer.alloc((stride + 1) * height);
  for (let y = 0; y < height; y++)
    lines.set(rgb.subarray(y * stride, (y + 1) * stride), y * (stride + 1) + 1);
  const data = deflateSync(lines, { level: 9 });
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("IDAT", data),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** @param {string} type @param {Buffer} data */
function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

/**
 * Drops an alpha channel. Throws for any other kind of PNG.
 * @param {Buffer} file
 * @returns {Picture}
 */
export function decodePng(file) {
  if (!file.subarray(0, 8).equals(SIGNATURE)) throw new Error("not a PNG file");
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)];
  const [depth, colour, , , interlaced] = file.subarray(24, 29);
  if (depth !== 8 || (colour !== RGB && colour !== RGBA) || interlaced !== 0)
    throw new Error(`unsupported PNG: depth ${depth}, colour type ${colour}, interlace ${interlaced}`);
  /** @type {Buffer[]} */
  const data = [];
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at))
    if (file.toString("latin1", at + 4, at + 8) === "IDAT")
      data.push(file.subarray(at + 8, at + 8 + file.readUInt32BE(at)));
  const channels = colour === RGB ? 3 : 4;
  const pixels = unfiltered(inflateSync(Buffer.concat(data)), width * channels, height, channels);
  if (channels === 3) return { width, height, rgb: pixels };
  const rgb = new Uint8Array(width * height * 3);
  for (let pixel = 0; pixel < width * height; pixel++)
    rgb.set(pixels.subarray(pixel * 4, pixel * 4 + 3), pixel * 3);
  return { width, height, rgb };
}

/**
 * Section 9, Filtering: each line starts with the filter that its bytes were put through.
 * @param {Buffer} lines @param {number} stride @param {number} height @param {number} channels
 */
function unfiltered(lines, stride, height, channels) {
  const pixels = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = lines[y * (stride + 1)] ?? 0;
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x >= channels ? (pixels[at - channels] ?? 0) : 0;
      const above = y > 0 ? (pixels[at - stride] ?? 0) : 0;
      const corner = x >= channels && y > 0 ? (pixels[at - stride - channels] ?? 0) : 0;
      pixels[at] = (lines[y * (stride + 1) + 1 + x] ?? 0) + predicted(filter, left, above, corner);
    }
  }
  return pixels;
}

/** @param {number} filter @param {number} left @param {number} above @param {number} corner */
function predicted(filter, left, above, corner) {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  const estimate = left + above - corner;
  const toLeft = Math.abs(estimate - left);
  const toAbove = Math.abs(estimate - above);
  const toCorner = Math.abs(estimate - corner);
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}
