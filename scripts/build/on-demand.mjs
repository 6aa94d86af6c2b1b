// Leaves the code behind `cachedDependency` to its first call, where nothing is bundled. A session is wrapped synchronously, so that code is
// loaded synchronously: as a file of CommonJS. Bundlers do not follow that: for them, the same code is an ES module that is imported.
//
// | file | what it is | who reads it |
// |---|---|---|
// | index.js | everything but that code | Node |
// | bundled.js | everything | bundlers, Bun, Deno |
// | chunk/cached-dependency.js | that code | bundlers, Bun, Deno |
// | chunk/cached-dependency.cjs | the same code | Node, on the first call or with the first of xcache/db/* |
// | chunk/cached-dependency-node.js | the exports of the one above | Node, with the first of xcache/db/* |
//
// package.json decides who is who, for the first two in `exports`, for the others in `imports`.
import { parseAst } from "rollup/parseAst";

/** The chunk. */
export const PART = "cached-dependency";

/** A module that only the code added below uses; the file that the bundler makes for it is not needed. */
export const FACADE = "core/required-code";

/** The chunk that has what the part uses of the library. */
const SHARED = "chunk/cache.js";

const INDEX = "index.js";
const BUNDLED = "bundled.js";

/** The name of the part in the `imports` of package.json. */
const SPECIFIER = `#${PART}`;

/** What the chunk of shared code exports in addition: makes the exports of the part, once. */
const MADE = "cachedDependencyCode";

/** @param {string} name */
const fileOf = (name) => `chunk/${name}`;

/** @typedef {{ readonly exported: string, readonly local: string }} Binding */

/**
 * The statements at the top of a module, with their places.
 * @param {string} code
 * @returns {any[]}
 */
const statementsOf = (code) => parseAst(code).body;

/**
 * What a module exports of its own.
 * @param {string} code
 * @returns {Binding[]}
 */
function exportsOf(code) {
  const lists = statementsOf(code).filter(({ type, source }) => type === "ExportNamedDeclaration" && !source);
  return lists.flatMap(({ specifiers, declaration }) => {
    if (declaration) throw new Error("expected the bundler to list exports");
    return specifiers.map((/** @type {any} */ { exported, local }) => ({
      exported: exported.name,
      local: local.name,
    }));
  });
}

/**
 * Names of variables that may get another value later: their importers would not see it.
 * @param {string} code
 */
function variables(code) {
  const found = statementsOf(code).flatMap((each) =>
    each.type === "VariableDeclaration" && each.kind !== "const" ? each.declarations : [],
  );
  return new Set(found.map(({ id }) => id.name));
}

/**
 * The properties of an object literal.
 * @param {readonly Binding[]} bindings
 */
const properties = (bindings) =>
  bindings.map(({ exported, local }) => (exported === local ? local : `${exported}:${local}`)).join(",");

/**
 * @param {string} code
 * @param {readonly Binding[]} bindings
 */
function requireConstants(code, bindings) {
  const mutable = variables(code);
  const changing = bindings.filter(({ local }) => mutable.has(local)).map(({ local }) => local);
  if (changing.length > 0) throw new Error(`cannot be shared, since they may change: ${changing}`);
}

/**
 * The chunk of shared code with what loads the part.
 * @param {string} code
 * @param {readonly string[]} needed Names of its exports.
 */
function withLoader(code, needed) {
  const known = exportsOf(code);
  /** @param {string} name */
  const named = (name) => {
    const binding = known.find(({ exported }) => exported === name);
    if (binding === undefined) throw new Error(`${SHARED} does not export ${name}`);
    return binding;
  };
  const shared = needed.map(named);
  requireConstants(code, shared);
  // Nothing is called at the top: a bundler would keep it.
  const once = `${MADE}Once ??= ${named("requiredCode").local}({ ${properties(shared)} })`;
  return `${code}\nlet ${MADE}Once;\nfunction ${MADE}() { return ${once}; }\nexport { ${MADE} };\n`;
}

/**
 * The part as CommonJS: a function of what it uses. Lines stay where they are, so that the map holds for both. The parentheses make V8
 * compile the function when it reads it, not a second time when it is called.
 * @param {string} code
 */
function asCommonJs(code) {
  /** @type {{ start: number, end: number, text: string }[]} */
  const edits = [];
  for (const statement of statementsOf(code)) {
    const { start, end } = statement;
    if (statement.type === "ImportDeclaration") {
      if (fileOf(statement.source.value.slice(2)) !== SHARED || edits.length > 0)
        throw new Error(`${PART} may import ${SHARED} only, in one statement`);
      const bindings = statement.specifiers.map((/** @type {any} */ { imported, local }) => ({
        exported: imported.name,
        local: local.name,
      }));
      edits.push({
        start,
        end,
        text: `"use strict";module.exports=(function(shared){const{${properties(bindings)}}=shared;`,
      });
    }
    if (statement.type === "ExportNamedDeclaration")
      edits.push({ start, end, text: `return{${properties(exportsOf(code))}}});` });
  }
  if (edits.length !== 2) throw new Error(`${PART} should have one import and one list of exports`);
  let text = code;
  for (const { start, end, text: put } of edits.toReversed()) {
    const lines = text.slice(start, end).match(/\n/g) ?? [];
    text = text.slice(0, start) + put + lines.join("") + text.slice(end);
  }
  return text;
}

/** @returns {import("rollup").OutputPlugin} */
export function onDemand() {
  return {
    name: "on-demand",
    renderChunk: (code, { fileName }, _, { chunks }) => {
      if (fileName === INDEX) return null;
      if (fileName === SHARED) {
        const needed = chunks[fileOf(`${PART}.js`)]?.importedBindings[SHARED] ?? [];
        return { code: withLoader(code, needed), map: null };
      }
      const imported = new RegExp(`(?<=\\bfrom ')\\.{1,2}/(chunk/)?${PART}\\.js(?=')`, "g");
      return { code: code.replace(imported, SPECIFIER), map: null };
    },
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const [part, index] = [bundle[fileOf(`${PART}.js`)], bundle[INDEX]];
        if (part?.type !== "chunk" || index?.type !== "chunk") throw new Error(`there is no ${PART}`);
        delete bundle[`${FACADE}.js`];
        /**
         * @param {string} fileName
         * @param {string} source
         */
        const emit = (fileName, source) => this.emitFile({ type: "asset", fileName, source });
        const bindings = exportsOf(part.code);
        requireConstants(part.code, bindings);
        const names = bindings.map(({ exported }) => exported).join(",");
        emit(fileOf(`${PART}.cjs`), asCommonJs(part.code));
        emit(
          fileOf(`${PART}-node.js`),
          `import{${MADE}}from"./cache.js";\nexport const{${names}}=${MADE}();\n`,
        );
        emit(BUNDLED, index.code);
        index.code = withoutPart(index.code);
      },
    },
  };
}

/**
 * The library without the part.
 * @param {string} code
 */
function withoutPart(code) {
  const [own, ...more] = statementsOf(code).filter(({ source }) => source?.value.endsWith(`/${PART}.js`));
  if (own === undefined || more.length > 0) throw new Error(`${INDEX} should export of ${PART} once`);
  const kept = code.slice(0, own.start) + code.slice(own.end).trimStart();
  const call = `export const cachedDependency=(dependency,options)=>${MADE}().cachedDependency(dependency,options);`;
  return `import{${MADE}}from"./${SHARED}";\n${kept.trimEnd()}\n${call}\n`;
}
