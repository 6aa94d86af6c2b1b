// Splits a bash line up to the cursor into words, and quotes candidates so that they can be inserted into it.

/** The quote that is still open in the last word. */
type Quote = "" | "'" | '"';

export interface BashLine {
  /** The last one is incomplete. */
  readonly words: readonly string[];
  readonly quote: Quote;
  /** Characters of the last word that stay: bash replaces only what follows the last word-break character. */
  readonly kept: number;
}

const BLANK = /\s/;
/** Characters a backslash escapes inside double quotes. */
const ESCAPED_IN_QUOTES = /[$`"\\]/;

/** `wordBreaks`: COMP_WORDBREAKS. Nothing is expanded. */
export function readBashLine(line: string, wordBreaks: string): BashLine {
  const words: string[] = [];
  let word = "";
  let isWord = false;
  let quote: Quote = "";
  let kept = 0;
  const append = (text: string): void => {
    word += text;
    isWord = true;
  };
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!;
    const next = line[at + 1] ?? "";
    if (quote === "'") {
      if (character === "'") quote = "";
      else append(character);
    } else if (character === "\\" && (quote === "" || ESCAPED_IN_QUOTES.test(next))) {
      append(next);
      at++;
    } else if (quote === '"') {
      if (character === '"') quote = "";
      else append(character);
    } else if (character === "'" || character === '"') {
      append("");
      quote = character;
      kept = word.length;
    } else if (BLANK.test(character)) {
      if (isWord) words.push(word);
      [word, isWord, kept] = ["", false, 0];
    } else {
      append(character);
      if (wordBreaks.includes(character)) kept = word.length;
    }
  }
  return { words: [...words, word], quote, kept };
}

/** The text bash inserts at the end of the word; undefined if the open quote cannot hold it. */
export function bashCandidate(
  candidate: string,
  { quote, kept }: Omit<BashLine, "words">,
): string | undefined {
  const rest = candidate.slice(kept);
  if (quote === "'") return rest.includes("'") ? undefined : rest;
  // Inside double quotes an exclamation mark triggers history expansion and cannot be escaped.
  if (quote === '"') return rest.includes("!") ? undefined : rest.replace(/[$`"\\]/g, "\\$&");
  return rest.replace(/[^\p{L}\p{M}\p{N}_@%+=:,./-]/gu, "\\$&");
}
