// Header fields as a flat list, name after value, in the order they were sent: what writeHead takes and what is stored.

/** `[name, value, name, value, ...]`; a repeated field is in it several times. */
export type HeaderList = readonly string[];

/** `name` in lower case. */
function isNamed(field: string | undefined, name: string): boolean {
  return (
    field !== undefined && field.length === name.length && (field === name || field.toLowerCase() === name)
  );
}

/** Every line of the field; `name` in lower case. */
export function linesOf(list: HeaderList, name: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at < list.length; at += 2) if (isNamed(list[at], name)) lines.push(list[at + 1]!);
  return lines;
}

/** The lines of the field as one (RFC 9110, 5.3); undefined when there is none. */
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

/** A list of those fields that `keeps` says yes to; it is asked with the name in lower case. */
export function filterFields(list: HeaderList, keeps: (name: string, value: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at]!;
    const value = list[at + 1]!;
    if (keeps(name.toLowerCase(), value)) kept.push(name, value);
  }
  return kept;
}

/** The list with one line of that name, the given one, in place of any other. */
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
