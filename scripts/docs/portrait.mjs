// How a page of the site looks: a small picture of its first screen, and the places and colours of its main parts. Fonts of
// another machine change the letters and a few lines; a broken stylesheet changes much more.
import { decodePng } from "./png.mjs";

/** @typedef {import("./png.mjs").Picture} Picture */
/** @typedef {{ x: number, y: number, width: number, height: number, colour: string, background: string }} Part */
/** @typedef {{ picture: Picture, parts: Record<string, Part | null> }} Portrait `null`: not on the screen */

/** Pixels of the page, along each side, that are one of the picture. */
const BLOCK = 20;
/**
 * The mean difference of two pictures, of 255. Measured on the pages below: at most 8.5 with every font replaced by serif
 * or DejaVu Sans, at least 10.4 without stylesheets.
 */
export const PICTURE_TOLERANCE = 9;
/** In pixels. Columns do not depend on fonts, but a button is as wide as its text, and what is below a text moves with its lines. */
const ACROSS_TOLERANCE = 24;
const DOWN_TOLERANCE = 90;

/** Each with the parts whose place and colours are compared. */
export const PORTRAYED = [
  {
    name: "landing",
    path: "/index.html",
    parts: [
      ".VPNav",
      ".VPHero .image-src",
      ".VPHero .VPButton.brand",
      ".VPFeature",
      ".vp-doc h2",
      ".vp-doc .language-ts",
    ],
  },
  {
    name: "guide",
    path: "/guide/loading.html",
    parts: [
      ".VPNav",
      ".VPSidebar",
      ".VPDocAside",
      ".content-container",
      ".vp-doc h1",
      ".vp-doc .language-ts",
    ],
  },
  {
    name: "api",
    path: "/api/classes/index.XCache.html",
    parts: [
      ".tsd-page-toolbar",
      ".site-menu",
      ".page-menu",
      ".col-content",
      ".col-content h1",
      ".col-content pre",
    ],
  },
];

/** @type {readonly { name: string, viewport: { width: number, height: number }, colorScheme: "light" | "dark" }[]} */
export const LOOKS = /** @type {const} */ (["light", "dark"]).flatMap((colorScheme) => [
  { name: `desktop-${colorScheme}`, viewport: { width: 1280, height: 900 }, colorScheme },
  { name: `phone-${colorScheme}`, viewport: { width: 390, height: 844 }, colorScheme },
]);

/**
 * @param {import("playwright-core").Page} page loaded
 * @param {readonly string[]} selectors
 * @returns {Promise<Portrait>}
 */
export async function portray(page, selectors) {
  await page.evaluate("document.fonts.ready");
  const shot = await page.screenshot({ animations: "disabled", caret: "hide" });
  /** @type {Portrait["parts"]} */
  const parts = await page.evaluate(`Object.fromEntries(${JSON.stringify(selectors)}.map((selector) => {
    const element = document.querySelector(selector);
    const box = element?.getBoundingClientRect() ?? { left: 0, top: 0, right: 0, bottom: 0 };
    const [x, y] = [Math.max(0, box.left), Math.max(0, box.top)];
    const [width, height] = [Math.min(innerWidth, box.right) - x, Math.min(innerHeight, box.bottom) - y];
    if (width <= 0 || height <= 0) return [selector, null];
    const [left, top, across, down] = [x, y, width, height].map(Math.round);
    const { color: colour, backgroundColor: background } = getComputedStyle(element);
    return [selector, { x: left, y: top, width: across, height: down, colour, background }];
  }))`);
  return { picture: shrink(decodePng(shot)), parts };
}

/** The mean colour of each block. @param {Picture} picture @returns {Picture} */
export function shrink({ width, height, rgb }) {
  const [across, down] = [Math.ceil(width / BLOCK), Math.ceil(height / BLOCK)];
  const sums = new Float64Array(across * down * 3);
  const counts = new Float64Array(across * down);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const block = Math.floor(y / BLOCK) * across + Math.floor(x / BLOCK);
      counts[block] = (counts[block] ?? 0) + 1;
      for (let channel = 0; channel < 3; channel++)
        sums[block * 3 + channel] =
          (sums[block * 3 + channel] ?? 0) + (rgb[(y * width + x) * 3 + channel] ?? 0);
    }
  const means = Uint8Array.from(sums, (sum, at) => Math.round(sum / (counts[Math.floor(at / 3)] ?? 1)));
  return { width: across, height: down, rgb: means };
}

/** What differs by more than fonts explain. @param {Portrait} kept @param {Portrait} seen */
export function differences(kept, seen) {
  /** @type {string[]} */
  const found = [];
  const distance = pictureDistance(kept.picture, seen.picture);
  if (!(distance <= PICTURE_TOLERANCE))
    found.push(
      `the picture differs by ${distance.toFixed(1)} of 255, at most ${PICTURE_TOLERANCE} is expected`,
    );
  for (const selector of new Set([...Object.keys(kept.parts), ...Object.keys(seen.parts)])) {
    const [before, now] = [kept.parts[selector] ?? null, seen.parts[selector] ?? null];
    if (!isAlike(before, now)) found.push(`${selector} was ${described(before)} and is ${described(now)}`);
  }
  return found;
}

/** Mean over the blocks of the channel that differs most. @param {Picture} one @param {Picture} other */
export function pictureDistance(one, other) {
  if (one.width !== other.width || one.height !== other.height) return Number.POSITIVE_INFINITY;
  let sum = 0;
  for (let at = 0; at < one.rgb.length; at += 3)
    sum += Math.max(...[at, at + 1, at + 2].map((i) => Math.abs((one.rgb[i] ?? 0) - (other.rgb[i] ?? 0))));
  return sum / (one.width * one.height);
}

/** @param {Part | null} one @param {Part | null} other */
function isAlike(one, other) {
  if (one === null || other === null) return one === other;
  return (
    one.colour === other.colour &&
    one.background === other.background &&
    Math.abs(one.x - other.x) <= ACROSS_TOLERANCE &&
    Math.abs(one.width - other.width) <= ACROSS_TOLERANCE &&
    Math.abs(one.y - other.y) <= DOWN_TOLERANCE &&
    Math.abs(one.height - other.height) <= DOWN_TOLERANCE
  );
}

/** @param {Part | null} part */
const described = (part) =>
  part === null
    ? "not on the screen"
    : `${part.width} x ${part.height} at ${part.x}, ${part.y}, ${part.colour} on ${part.background}`;
