// Private fields as properties, so that an exploration can compare what two processes have in memory.
import { parseAst } from "rollup/parseAst";

/**
 * `#value` of the class Entry becomes `Entry$value`: classes that extend each other may use the same names.
 * @param {string} code
 */
export function openedFields(code) {
  if (!code.includes("#")) return code;
  /** @type {{ at: number, end: number, text: string }[]} */
  const changes = [];
  /**
   * @param {any} node
   * @param {readonly { name: string, fields: Set<string> }[]} classes Around the node, from the outermost.
   */
  const visit = (node, classes) => {
    if (typeof node !== "object" || node === null) return;
    if (node.type === "PrivateIdentifier") {
      changes.push({ at: node.start, end: node.end, text: nameOf(node, classes) });
      return;
    }
    if (node.type === "BinaryExpression" && node.left.type === "PrivateIdentifier") {
      const { start, end } = node.left;
      changes.push({ at: start, end, text: JSON.stringify(nameOf(node.left, classes)) });
      visit(node.right, classes);
      return;
    }
    const within = node.body?.type === "ClassBody" ? [...classes, described(node)] : classes;
    for (const child of Object.values(node)) visit(child, within);
  };
  visit(parseAst(code), []);
  // From the last one, so that those before it stay where they are.
  return changes
    .sort((one, other) => other.at - one.at)
    .reduce((changed, { at, end, text }) => changed.slice(0, at) + text + changed.slice(end), code);
}

/** @param {any} node Of a class. */
function described({ id, body }) {
  const keys = body.body.map((/** @type {any} */ { key }) => key).filter(Boolean);
  const fields = keys.filter((/** @type {any} */ { type }) => type === "PrivateIdentifier");
  return { name: id?.name ?? "Unnamed", fields: new Set(fields.map((/** @type {any} */ { name }) => name)) };
}

/** @param {{ name: string }} field @param {readonly { name: string, fields: Set<string> }[]} classes */
function nameOf({ name }, classes) {
  const owner = classes.findLast(({ fields }) => fields.has(name));
  if (owner === undefined) throw new Error(`no class around it has a private field #${name}`);
  return `${owner.name}$${name}`;
}
