// Reads a source file the way the architecture rules see it: its imports and its uses of time and chance.
import ts from "typescript";

export interface Import {
  readonly specifier: string;
  readonly line: number;
}

/** Every import, re-export, dynamic import and import type of a file. */
export function importsOf(path: string, text: string): Import[] {
  const source = parse(path, text);
  const found: Import[] = [];
  walk(source, (node) => {
    const specifier = specifierOf(node);
    if (specifier !== undefined) found.push({ specifier: specifier.text, line: lineOf(source, specifier) });
  });
  return found;
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

/** Uses of time, timers and chance that belong into the clock, as `what at line n`. */
export function clockUsesOf(path: string, text: string): string[] {
  const source = parse(path, text);
  const found: string[] = [];
  walk(source, (node) => {
    const use = clockUse(node, source);
    if (use !== undefined) found.push(`${use} at line ${lineOf(source, node)}`);
  });
  return found;
}

function clockUse(node: ts.Node, source: ts.SourceFile): string | undefined {
  if (ts.isIdentifier(node) && TIMERS.has(node.text) && !isMemberName(node)) return node.text;
  if (ts.isPropertyAccessExpression(node)) {
    const name = node.getText(source).replace(/^globalThis\./, "");
    if (READINGS.has(name) || TIMERS.has(name)) return name;
  }
  const isBareDate = ts.isNewExpression(node) && node.expression.getText(source) === "Date";
  if (isBareDate && (node.arguments?.length ?? 0) === 0) return "new Date()";
  return undefined;
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

function parse(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}
