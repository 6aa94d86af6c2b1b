// Reads a source file as the architecture rules see it: its imports and its uses of time and chance, from one parse.
import ts from "typescript";

export interface Import {
  readonly specifier: string;
  readonly line: number;
}

export interface SourceFacts {
  /** Every import, re-export, dynamic import and import type. */
  readonly imports: readonly Import[];
  /** Uses of time, timers and chance that belong into the clock, as `what at line n`. */
  readonly clockUses: readonly string[];
}

/** Comments are not looked at. */
const SYNTAX: ts.CreateSourceFileOptions = {
  languageVersion: ts.ScriptTarget.Latest,
  jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
};

export function factsOf(path: string, text: string): SourceFacts {
  const source = ts.createSourceFile(path, text, SYNTAX, true);
  const imports: Import[] = [];
  const clockUses: string[] = [];
  const lineOf = (node: ts.Node): number =>
    source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
  const visit = (node: ts.Node): void => {
    const specifier = specifierOf(node);
    if (specifier !== undefined) imports.push({ specifier: specifier.text, line: lineOf(specifier) });
    const use = clockUse(node);
    if (use !== undefined) clockUses.push(`${use} at line ${lineOf(node)}`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { imports, clockUses };
}

function specifierOf(node: ts.Node): ts.StringLiteralLike | undefined {
  let target: ts.Node | undefined;
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) target = node.moduleSpecifier;
  else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) target = node.argument.literal;
  else if (ts.isCallExpression(node) && isImporter(node.expression)) target = node.arguments[0];
  return target !== undefined && ts.isStringLiteralLike(target) ? target : undefined;
}

function isImporter(callee: ts.Expression): boolean {
  return (
    callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === "require")
  );
}

const TIMERS = new Set(["setTimeout", "setInterval"]);
const READINGS = new Set([
  "Date.now",
  "performance.now",
  "Math.random",
  "process.hrtime",
  "process.hrtime.bigint",
  "AbortSignal.timeout",
]);

function clockUse(node: ts.Node): string | undefined {
  if (ts.isIdentifier(node) && TIMERS.has(node.text) && !isMemberName(node)) return node.text;
  if (ts.isPropertyAccessExpression(node)) {
    const name = dottedName(node)?.replace(/^globalThis\./, "");
    if (name !== undefined && (READINGS.has(name) || TIMERS.has(name))) return name;
  }
  const isBareDate = ts.isNewExpression(node) && dottedName(node.expression) === "Date";
  if (isBareDate && (node.arguments?.length ?? 0) === 0) return "new Date()";
  return undefined;
}

/** `a.b.c` where that is all an expression says. */
function dottedName(node: ts.Expression): string | undefined {
  if (ts.isIdentifier(node)) return node.text;
  if (!ts.isPropertyAccessExpression(node)) return undefined;
  const object = dottedName(node.expression);
  return object === undefined ? undefined : `${object}.${node.name.text}`;
}

/** `timers.setTimeout` in a property position, or a method of that name, is not the global. */
function isMemberName(node: ts.Identifier): boolean {
  const { parent } = node;
  return (
    (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
    ((ts.isMethodDeclaration(parent) || ts.isMethodSignature(parent) || ts.isPropertySignature(parent)) &&
      parent.name === node)
  );
}
