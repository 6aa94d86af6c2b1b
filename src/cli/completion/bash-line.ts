// A line of bash up to the cursor: its words as the program would get them, and candidates as they are to be typed.

/** Which quote the last word has left open. */
type Quote = "" | "'" | '"';

export interface BashLine {
  /** The last one is unfinished. */
  readonly words: readonly string[];
  readonly quote: Quote;
  /** How much of the last word stays: bash puts a candidate only behind the last character that breaks words. */
  readonly kept: number;
}

const BLANK = /\s/;
/** What a backslash takes the meaning from between double quotes. */
const ESCAPED_IN_QUOTES = /[$`"\\]/;

/** `breaks`: COMP_WORDBREAKS. Nothing is expanded. */
export function readBashLine(line: string, breaks: string): BashLine {
  const words: string[] = [];
  let word = "";
  let isWord = false;
  let quote: Quote = "";
  let kept = 0;
  const take = (text: string): void => {
    word += text;
    isWord = true;
  };
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!;
    const next = line[at + 1] ?? "";
    if (quote === "'") {
      if (character === "'") quote = "";
      else take(character);
    } else if (character === "\\" && (quote === "" || ESCAPED_IN_QUOTES.test(next))) {
      take(next);
      at++;
    } else if (quote === '"') {
      if (character === '"') quote = "";
      else take(character);
    } else if (character === "'" || character === '"') {
      take("");
      quote = character;
      kept = word.length;
    } else if (BLANK.test(character)) {
      if (isWord) words.push(word);
      [word, isWord, kept] = ["", false, 0];
    } else {
      take(character);
      if (breaks.includes(character)) kept = word.length;
    }
  }
  return { words: [...words, word], quote, kept };
}

/** What bash is to put in the place of the end of the word; undefined where the open quote leaves no way to say it. */
export function bashCandidate(
  candidate: string,
  { quote, kept }: Omit<BashLine, "words">,
): string | undefined {
  const rest = candidate.slice(kept);
  if (quote === "'") return rest.includes("'") ? undefined : rest;
  // Between double quotes an exclamation mark means the history, and nothing takes that from it.
  if (quote === '"') return rest.includes("!") ? undefined : rest.replace(/[$`"\\]/g, "\\$&");
  return rest.replace(/[^\p{L}\p{M}\p{N}_@%+=:,./-]/gu, "\\$&");
}
