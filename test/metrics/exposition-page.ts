// A strict parser of the Prometheus text format 0.0.4: any deviation from the format is an error.

export interface Page {
  /** Value by series, labels sorted, as `name{a="b"}`. */
  readonly series: ReadonlyMap<string, number>;
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
}

const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"/y;

export function readPage(text: string): Page {
  const [series, types, helps] = [
    new Map<string, number>(),
    new Map<string, string>(),
    new Map<string, string>(),
  ];
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line does not end");
  for (const line of text.split("\n").slice(0, -1)) {
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.*)$/.exec(line) ?? [];
    const into = kind === "HELP" ? helps : kind === "TYPE" ? types : undefined;
    if (into?.has(name)) throw new Error(`a second ${kind} of ${name}`);
    if (into !== undefined) into.set(name, rest);
    else if (line !== "") readSeries(line, series, types);
  }
  return { series, types, helps };
}

function readSeries(line: string, series: Map<string, number>, types: ReadonlyMap<string, string>): void {
  const name = /^[a-zA-Z_:][\w:]*/.exec(line)?.[0] ?? "";
  let at = name.length;
  const labels: string[] = [];
  if (line[at] === "{") {
    do {
      LABEL.lastIndex = at + 1;
      const label = LABEL.exec(line);
      if (label === null) throw new Error(`no label at ${at}: ${line}`);
      labels.push(label[0]);
      at = LABEL.lastIndex;
    } while (line[at] === ",");
    if (line[at++] !== "}") throw new Error(`no end of labels: ${line}`);
  }
  const value = /^ ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/.exec(line.slice(at))?.[1];
  if (value === undefined) throw new Error(`no value: ${line}`);
  const family = name.replace(/_(bucket|sum|count)$/, "");
  if (!types.has(name) && types.get(family) !== "histogram") throw new Error(`no TYPE before ${line}`);
  const id = labels.length === 0 ? name : `${name}{${labels.sort().join(",")}}`;
  if (series.has(id)) throw new Error(`a second ${id}`);
  series.set(id, Number(value.replace("Inf", "Infinity")));
}
