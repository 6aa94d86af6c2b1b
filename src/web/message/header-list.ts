// Header fields as a flat list of names and values, in the order sent: the form that writeHead accepts and that is stored.

/** `[name, value, name, value, ...]`; a repeated field occurs several times. */
export type HeaderList = readonly string[];

/** `name` in lower case. */
function isNamed(field: string | undefined, name: string): boolean {
  return (
    field !== undefined && field.length === name.length && (field === name || field.toLowerCase() === name)
  );
}

/** Every line of the field. `name` is in lower case. */
export function linesOf(list: HeaderList, name: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at < list.length; at += 2) if (isNamed(list[at], name)) lines.push(list[at + 1]!);
  return lines;
}

/** The field's lines joined by a comma (RFC 9110, 5.3), or undefined if absent. */
export function fieldOf(list: HeaderList, name: string): string | undefined {
  let value: string | undefined;
  for (let at = 0; at < list.length; at += 2) {
    if (isNamed(list[at], name)) value = value === undefined ? list[at + 1]! : `${value}, ${list[at + 1]}`;
  }
  return value;
}

export function hasField(list: HeaderList, name: string): boolean {
  for (let at = 0; at < list.length; at += 2) if (isNamed(list[at], name)) return true;
  return false;
}

/** The fields for which `keeps` returns true. It is called with the name in lower case. */
export function filterFields(list: HeaderList, keeps: (name: string, value: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at]!;
    const value = list[at + 1]!;
    if (keeps(name.toLowerCase(), value)) kept.push(name, value);
  }
  return kept;
}

/** The list with the field set to this value, replacing all its lines. */
export function withField(list: HeaderList, name: string, value: string): string[] {
  const lower = name.toLowerCase();
  const next = filterFields(list, (field) => field !== lower);
  next.push(name, value);
  return next;
}

/** The members of a comma-separated list, trimmed, without empty ones. */
export function membersOf(value: string): string[] {
  return value
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "");
}
