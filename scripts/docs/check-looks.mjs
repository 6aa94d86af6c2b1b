// Compares how the main pages of the built site look with the pictures kept in test/docs/pictures, on a desktop and on a phone,
// light and dark; and makes sure that a broken page would be noticed and other fonts would not.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodePng, encodePng } from "./png.mjs";
import { differences, LOOKS, PORTRAYED, portray } from "./portrait.mjs";

const KEPT = fileURLToPath(new URL("../../test/docs/pictures", import.meta.url));
const PARTS = join(KEPT, "parts.json");

/** @typedef {import("./portrait.mjs").Portrait} Portrait */

/** What may break a page, and must be noticed on each. */
const BREAKAGES = [
  { name: "without stylesheets", blocked: /\.css$/ },
  { name: "in the other colour scheme", flipped: true },
];
/** What another machine may have instead of the fonts of this one. */
const OTHER_FONTS = ["serif", "DejaVu Sans"];

/**
 * Returns what is wrong. `update`: keeps what is seen instead.
 * @param {import("playwright-core").Browser} browser
 * @param {string} origin
 * @param {boolean} update
 */
export async function checkLooks(browser, origin, update) {
  /** @type {string[]} */
  const problems = [];
  /** @type {Record<string, Portrait["parts"]>} */
  const parts = existsSync(PARTS) ? JSON.parse(readFileSync(PARTS, "utf8")) : {};
  mkdirSync(KEPT, { recursive: true });
  for (const page of PORTRAYED)
    for (const look of LOOKS) {
      const title = `${page.name}-${look.name}`;
      const file = join(KEPT, `${title}.png`);
      const seen = await see(browser, `${origin}${page.path}`, page.parts, look);
      if (update) {
        writeFileSync(file, encodePng(seen.picture));
        parts[title] = seen.parts;
      }
      const keptParts = parts[title];
      if (keptParts === undefined || !existsSync(file)) {
        problems.push(`${title}: no picture is kept; run \`npm run test:site -- --update\` and look at it`);
        continue;
      }
      const kept = { picture: decodePng(readFileSync(file)), parts: keptParts };
      problems.push(...differences(kept, seen).map((difference) => `${title}: ${difference}`));
      for (const font of OTHER_FONTS) {
        const other = await see(browser, `${origin}${page.path}`, page.parts, look, { font });
        problems.push(...differences(kept, other).map((difference) => `${title} in ${font}: ${difference}`));
      }
      for (const { name, blocked, flipped } of BREAKAGES) {
        const colorScheme = flipped ? (look.colorScheme === "dark" ? "light" : "dark") : look.colorScheme;
        const broken = await see(
          browser,
          `${origin}${page.path}`,
          page.parts,
          { ...look, colorScheme },
          { blocked },
        );
        const { picture } = broken;
        // The picture and the parts are each enough.
        if (differences(kept, { ...kept, picture }).length === 0)
          problems.push(`${title} ${name}: its picture passes`);
        if (differences(kept, { ...broken, picture: kept.picture }).length === 0)
          problems.push(`${title} ${name}: its parts pass`);
      }
    }
  if (update) writeFileSync(PARTS, `${JSON.stringify(parts, null, 2)}\n`);
  return problems;
}

/**
 * @param {import("playwright-core").Browser} browser
 * @param {string} url
 * @param {readonly string[]} selectors
 * @param {(typeof LOOKS)[number]} look
 * @param {{ blocked?: RegExp | undefined, font?: string }} [changes]
 */
async function see(browser, url, selectors, { viewport, colorScheme }, { blocked, font } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  try {
    const page = await context.newPage();
    if (blocked !== undefined) await page.route(blocked, (route) => route.abort());
    await page.goto(url, { waitUntil: "networkidle" });
    if (font !== undefined) await page.addStyleTag({ content: `* { font-family: "${font}" !important }` });
    return await portray(page, selectors);
  } finally {
    await context.close();
  }
}
