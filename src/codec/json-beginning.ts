// Parses the beginning of a JSON text: what is complete, and a string in which the text ends as far as it goes.
import type { Beginning } from "../core/codec.ts";
import { damaged } from "./byte-reader.ts";

/** The text without a character that is cut in its middle. */
export function wholeText(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });
}

/** Throws CodecError for a text that does not begin like JSON. */
export function jsonBeginning(bytes: Uint8Array): Omit<Beginning, "isWhole"> {
  const text = wholeText(bytes);
  const { end, closing } = lastStop(text);
  try {
    return { value: JSON.parse(text.slice(0, end) + closing) as unknown };
  } catch (cause) {
    throw damaged("it is not JSON text", cause);
  }
}

/** The last place where the text can be ended, and what has to follow there. */
function lastStop(text: string): { readonly end: number; readonly closing: string } {
  const open: string[] = [];
  const closers = (): string => open.toReversed().join("");
  let stop = { end: 0, closing: "null" };
  let isName = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      const end = stringEnd(text, at + 1);
      if (end === undefined) return isName ? stop : { end: safeCut(text, at), closing: `"${closers()}` };
      at = end;
      if (!isName) stop = { end: at + 1, closing: closers() };
    } else if (character === "{" || character === "[") {
      open.push(character === "{" ? "}" : "]");
      stop = { end: at + 1, closing: closers() };
      isName = character === "{";
    } else if (character === "}" || character === "]") {
      open.pop();
      stop = { end: at + 1, closing: closers() };
    } else if (character === ",") {
      // Before it: a number that it ends is complete.
      stop = { end: at, closing: closers() };
      isName = open.at(-1) === "}";
    } else if (character === ":") isName = false;
  }
  return stop;
}

/** The place of the closing quote. */
function stringEnd(text: string, from: number): number | undefined {
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return undefined;
}

/** Where a string that has no end can be cut: not within an escape such as \u00e9. */
function safeCut(text: string, quote: number): number {
  const backslash = text.lastIndexOf("\\");
  if (backslash <= quote || text.length - backslash > 6) return text.length;
  // A backslash that is itself escaped begins no escape.
  let run = backslash;
  while (text[run - 1] === "\\") run--;
  return (backslash - run) % 2 === 1 ? text.length : backslash;
}
