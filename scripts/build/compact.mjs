// Makes the text of a bundled file short, because Node takes its time over every character, and writes the map back to its source.
import { readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { decode, encode } from "@jridgewell/sourcemap-codec";
import { parseAst } from "rollup/parseAst";
import { transformWithEsbuild } from "vite";

/** From so many characters on, a file gets short names and a map. In a smaller one they would save less than the map takes. */
const MAPPED = 32_000;

/** Stands for the # of a private name that is kept: as long, so that columns stay, and unlike other characters not escaped. */
const KEPT = "$";

/** A line that calls or throws, or uses a property. */
const FALLIBLE = /(?<!\b(?:if|for|while|switch|catch) ?)\(|[.[`]|\b(?:throw|await|new|yield)\b/;

/** What a line may end with, wherever it stands. */
const BREAKABLE = new Set("{}(;,");

/** A direct eval: esbuild keeps the names that it could see, which are those at the top of the file. It is taken out afterwards. */
const WITNESS = 'eval("");';

/**
 * Private names that appear in stack traces, and the places of their #.
 * @param {string} code
 */
function calledPrivateNames(code) {
  /** @type {Set<string>} */
  const called = new Set();
  /** @type {{ name: string, at: number }[]} */
  const found = [];
  const visit = (/** @type {any} */ node) => {
    if (typeof node !== "object" || node === null) return;
    if (node.type === "PrivateIdentifier") found.push({ name: node.name, at: node.start });
    const isCalled = node.type === "MethodDefinition" || /Function/.test(node.value?.type);
    if (isCalled && node.key?.type === "PrivateIdentifier") called.add(node.key.name);
    for (const below of Object.values(node)) visit(below);
  };
  visit(parseAst(code));
  const places = found.filter(({ name }) => called.has(name)).map(({ at }) => at);
  return { called, places: places.toSorted((a, b) => a - b) };
}

/**
 * The code with marks in place of the # of private names that are kept, and what puts them back.
 * @param {string} code
 */
function marked(code) {
  const { called, places } = calledPrivateNames(code);
  const marks = new RegExp(`(?<![\\w$])\\${KEPT}(?=(?:${[...called].join("|") || KEPT})(?![\\w$]))`, "g");
  if (marks.test(code) || code.includes(WITNESS))
    throw new Error(`the code has ${KEPT} or ${WITNESS} of its own`);
  let text = "";
  let from = 0;
  for (const at of places) {
    text += code.slice(from, at) + KEPT;
    from = at + 1;
  }
  /** @param {string} made */
  const unmark = (made) => {
    const count = made.match(marks)?.length ?? 0;
    if (count > places.length) throw new Error("esbuild has given a name that looks like one that is kept");
    return made.replace(marks, "#");
  };
  return { text: text + code.slice(from), unmark };
}

/**
 * The code with a line for each line of a source that a stack trace can name, as far as a line can break there, and the map from those.
 * The breaks make the map small and a stack trace precise without it.
 * @param {string} code
 * @param {string} mappings
 * @param {readonly string[]} sources Paths.
 */
function byLines(code, mappings, sources) {
  const texts = sources.map((path) => readFileSync(path, "utf8").split("\n"));
  const places = decode(mappings);
  /** @type {string[]} */
  const lines = [];
  /** @type {[column: number, source: number, line: number, sourceColumn: number][][]} */
  const kept = [];
  for (const [index, text] of code.split("\n").entries()) {
    let from = 0;
    /** @type {typeof kept[number]} */
    let segments = [];
    const end = (/** @type {number} */ at) => {
      lines.push(text.slice(from, at));
      kept.push(segments);
      segments = [];
      from = at;
    };
    let last = "";
    for (const [column, source = 0, line = 0] of places[index] ?? []) {
      if (last === `${source}:${line}` || !FALLIBLE.test(texts[source]?.[line] ?? "")) continue;
      last = `${source}:${line}`;
      if (column > from && BREAKABLE.has(text[column - 1] ?? "")) end(column);
      segments.push([column - from, source, line, 0]);
    }
    end(text.length);
  }
  const broken = lines.join("\n");
  if (shapeOf(broken) !== shapeOf(code)) throw new Error("a line break has changed the code");
  return { code: broken, mappings: encode(kept) };
}

/**
 * The syntax of a module, without places.
 * @param {string} code
 */
function shapeOf(code) {
  const places = new Set(["start", "end"]);
  return JSON.stringify(parseAst(code), (name, value) => {
    if (places.has(name)) return undefined;
    return typeof value === "bigint" ? String(value) : value;
  });
}

/**
 * @param {string} code
 * @param {string} fileName
 * @param {boolean} hasShortNames
 */
async function esbuilt(code, fileName, hasShortNames) {
  const options = {
    loader: "js",
    target: "esnext",
    legalComments: "none",
    minifyWhitespace: true,
    minifySyntax: true,
    minifyIdentifiers: hasShortNames,
    ...(hasShortNames ? {} : { lineLimit: 200 }),
  };
  return transformWithEsbuild(code, fileName, /** @type {any} */ (options));
}

/**
 * The declarations keep their comments, where editors show them; in the code, comments and white space only take time to
 * load. Lines stay short. Large files also get short names and a map. Only names that neither a stack trace nor an error shows become
 * short: those of parameters, of what is declared within functions, and of private fields.
 * @param {string} root
 * @returns {import("rollup").OutputPlugin}
 */
export function compact(root) {
  /** @type {Set<string>} */
  const mapped = new Set();
  return {
    name: "compact",
    renderChunk: async (code, { fileName }) => {
      const plain = await esbuilt(code, fileName, false);
      if (plain.code.length < MAPPED) return { code: plain.code, map: null };
      mapped.add(fileName);
      const { text, unmark } = marked(code);
      const short = await esbuilt(`${text}\n${WITNESS}`, fileName, true);
      return { code: unmark(short.code.replace(WITNESS, "")), map: JSON.stringify(short.map) };
    },
    generateBundle({ dir = "" }, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== "chunk" || file.map === null) continue;
        const mapName = `${file.fileName}.map`;
        delete bundle[mapName];
        if (!mapped.has(file.fileName)) continue;
        const sources = file.map.sources.map((path) => join(dir, file.fileName, "..", path));
        const folder = join(root, "dist", file.fileName, "..");
        const { code, mappings } = byLines(file.code, file.map.mappings, sources);
        const map = {
          version: 3,
          sources: sources.map((path) => relative(folder, path).replaceAll("\\", "/")),
          names: [],
          mappings,
        };
        this.emitFile({ type: "asset", fileName: mapName, source: JSON.stringify(map) });
        file.code = `${code.trimEnd()}\n//# sourceMappingURL=${basename(mapName)}\n`;
      }
    },
  };
}
