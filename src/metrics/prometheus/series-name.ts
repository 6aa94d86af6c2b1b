// Names in an exposition: what is not allowed becomes an underscore.

/** A metric's name; dots become underscores. */
export function seriesName(...parts: readonly (string | undefined)[]): string {
  const name = parts
    .filter((part) => part !== undefined && part !== "")
    .join("_")
    .replace(/[^a-zA-Z0-9_:]/g, "_");
  return /^[a-zA-Z_:]/.test(name) ? name : `_${name}`;
}

/** A label's name; two underscores at its begin belong to the server. */
export function labelName(name: string): string {
  const plain = name.replace(/[^a-zA-Z0-9_]/g, "_").replace(/^__+/, "_");
  return /^[a-zA-Z_]/.test(plain) ? plain : `_${plain}`;
}
