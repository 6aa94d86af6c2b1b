// How pages of the site are compared with their kept pictures. `npm run test:site` does it with the built site, in Chromium.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { decodePng, encodePng } from "../../scripts/docs/png.mjs";
import {
  differences,
  LOOKS,
  PICTURE_TOLERANCE,
  PORTRAYED,
  type Portrait,
  pictureDistance,
  shrink,
} from "../../scripts/docs/portrait.mjs";

const PICTURES = join(import.meta.dirname, "pictures");
const titles = PORTRAYED.flatMap(({ name }) => LOOKS.map((look) => `${name}-${look.name}`));

const plain = (width: number, height: number, grey: number) => ({
  width,
  height,
  rgb: new Uint8Array(width * height * 3).fill(grey),
});
const part = { x: 0, y: 0, width: 100, height: 50, colour: "rgb(0, 0, 0)", background: "rgb(255, 255, 255)" };
const portrait = (grey: number, nav: Portrait["parts"][string] = part): Portrait => ({
  picture: plain(4, 3, grey),
  parts: { nav },
});

describe("the kept pictures", () => {
  it("are those of every page and look, and no other", () => {
    expect(readdirSync(PICTURES).sort()).toEqual(
      [...titles.map((title) => `${title}.png`), "parts.json"].sort(),
    );
    const parts: object = JSON.parse(readFileSync(join(PICTURES, "parts.json"), "utf8"));
    expect(Object.keys(parts).sort()).toEqual([...titles].sort());
  });

  it.each(titles)("%s is read and written without loss", (title) => {
    const picture = decodePng(readFileSync(join(PICTURES, `${title}.png`)));
    expect(decodePng(encodePng(picture))).toEqual(picture);
  });

  it("differ from each other by more than fonts do", () => {
    for (const { name } of PORTRAYED) {
      const [light, dark] = ["light", "dark"].map((scheme) =>
        decodePng(readFileSync(join(PICTURES, `${name}-desktop-${scheme}.png`))),
      );
      expect(pictureDistance(light!, dark!)).toBeGreaterThan(PICTURE_TOLERANCE);
    }
  });
});

describe("a PNG file", () => {
  /** Two lines of two pixels; the second is put through the filter. */
  const filtered = (filter: number, second: readonly number[]): Buffer => {
    const file = encodePng(plain(2, 2, 0));
    const data = deflateSync(Buffer.from([0, 10, 20, 30, 40, 50, 60, filter, ...second]));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    const start = file.subarray(0, 33);
    return Buffer.concat([start, length, Buffer.from("IDAT"), data, Buffer.alloc(4), file.subarray(-12)]);
  };

  it.each([
    ["none", 0, [11, 22, 33, 44, 55, 66]],
    ["sub", 1, [11, 22, 33, 33, 33, 33]],
    ["up", 2, [1, 2, 3, 4, 5, 6]],
    ["average", 3, [6, 12, 18, 19, 19, 20]],
    ["Paeth", 4, [1, 2, 3, 4, 5, 6]],
  ])("of the filter %s is read", (_, filter, second) => {
    expect([...decodePng(filtered(filter, second)).rgb]).toEqual([
      10, 20, 30, 40, 50, 60, 11, 22, 33, 44, 55, 66,
    ]);
  });

  it("of another kind is refused", () => {
    expect(() => decodePng(Buffer.from("GIF89a"))).toThrow("not a PNG file");
    const palette = encodePng(plain(1, 1, 0));
    palette[25] = 3;
    expect(() => decodePng(palette)).toThrow("unsupported PNG: depth 8, colour type 3, interlace 0");
  });
});

describe("a comparison", () => {
  it("is of mean colours of blocks of 20 pixels", () => {
    const picture = plain(40, 20, 0);
    picture.rgb.fill(200, 0, 10 * 3);
    expect([...shrink(picture).rgb]).toEqual([5, 5, 5, 0, 0, 0]);
  });

  it("finds nothing between equals, nor within the tolerance", () => {
    expect(differences(portrait(0), portrait(0))).toEqual([]);
    expect(differences(portrait(0), portrait(PICTURE_TOLERANCE))).toEqual([]);
    expect(differences(portrait(0), portrait(0, { ...part, y: 60, width: 110 }))).toEqual([]);
  });

  it("finds a picture that differs or has another size", () => {
    expect(differences(portrait(0), portrait(10))).toEqual([
      "the picture differs by 10.0 of 255, at most 9 is expected",
    ]);
    expect(differences(portrait(0), { ...portrait(0), picture: plain(3, 4, 0) })).toHaveLength(1);
  });

  it.each([
    ["colour", { ...part, colour: "rgb(0, 0, 1)" }],
    ["background", { ...part, background: "rgb(0, 0, 1)" }],
    ["place", { ...part, x: 30 }],
    ["height", { ...part, height: 150 }],
    ["absence", null],
  ])("finds another %s of a part", (_, seen) => {
    expect(differences(portrait(0), portrait(0, seen))).toHaveLength(1);
    expect(differences(portrait(0, seen), portrait(0))).toHaveLength(1);
  });
});
