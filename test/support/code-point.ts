// Any code point, for fc.string: what its unit "binary" generates and shrinks to, without a table of all million of them. The
// table took a second to make, and memory that every later collection of garbage walks through.
import fc from "fast-check";

const SURROGATES = 0xd800;
const AFTER_SURROGATES = 0xe000;
const SKIPPED = AFTER_SURROGATES - SURROGATES;

export const codePoint = fc
  .nat({ max: 0x10ffff - SKIPPED })
  .map((at) => String.fromCodePoint(at < SURROGATES ? at : at + SKIPPED), numberOf);

/** The number that becomes this text; fast-check expects a throw for what none becomes. */
function numberOf(text: unknown): number {
  const point = typeof text === "string" ? (text.codePointAt(0) ?? -1) : -1;
  if (point < 0 || String.fromCodePoint(point) !== text) throw new RangeError("not one code point");
  if (point < SURROGATES) return point;
  if (point < AFTER_SURROGATES) throw new RangeError("a surrogate");
  return point - SKIPPED;
}
