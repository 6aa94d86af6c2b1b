// Fields that outer middleware adds to a response after its handler: it adds them to stored responses as well, so they are not
// stored. Frameworks let it act at different moments, which an adapter reports.
import { filterFields, type HeaderList } from "../message/header-list.ts";
import { headersOf, type NodeResponse, sinkOf } from "./node-response.ts";
import { givenHeaders } from "./write-head.ts";

/** They describe the content, which is stored as it was sent, or its caching. */
const OF_CONTENT =
  /^(?:content-.*|etag|last-modified|accept-ranges|vary|cache-control|.*-cache-control|surrogate-.*|cache-tag|expires|pragma|age|date)$/;

/** Whether the field belongs to the stored body. `name` is in lower case. */
export const isOfBody = (name: string): boolean =>
  /^(?:content-(?:type|length|encoding|range|language)|etag|transfer-encoding)$/.test(name);

const lineOf = (name: string, value: string): string => `${name.toLowerCase()}:${value}`;

function linesOf(headers: HeaderList): Set<string> {
  const lines = new Set<string>();
  for (let at = 0; at < headers.length; at += 2) lines.add(lineOf(headers[at]!, headers[at + 1]!));
  return lines;
}

/** A time in which only outer middleware acts on a response. */
interface Phase {
  readonly before: ReadonlySet<string>;
  after?: ReadonlySet<string>;
}

export class LateFields {
  readonly #phases: Phase[] = [];

  /** Outer middleware is next. */
  begin(headers: HeaderList): void {
    this.#phases.push({ before: linesOf(headers) });
  }

  /** Outer middleware is done. */
  end(headers: HeaderList): void {
    for (const phase of this.#phases) phase.after ??= linesOf(headers);
  }

  /** Whether outer middleware added this line. `name` is in lower case. Cookies are never stored. */
  has(name: string, value: string): boolean {
    if (this.#phases.length === 0 || name === "set-cookie" || OF_CONTENT.test(name)) return false;
    const line = lineOf(name, value);
    return this.#phases.some(({ before, after }) => after?.has(line) && !before.has(line));
  }

  /** The fields of a response that its client gets in place of the one whose fields were `before`. */
  appliedTo(headers: HeaderList, before: HeaderList): HeaderList {
    const late = filterFields(before, (name, value) => this.has(name, value));
    if (late.length === 0) return headers;
    const replaced = new Set<string>();
    for (let at = 0; at < late.length; at += 2) replaced.add(late[at]!.toLowerCase());
    // Where the handler's lines are still there, outer middleware has only added to them.
    filterFields(before, (name, value) => !this.has(name, value) && replaced.delete(name));
    return [...filterFields(headers, (name) => !replaced.has(name)), ...late];
  }
}

/** Reports the head of a response as it is before the patches of writeHead that outer middleware has made so far act on it. */
export function reportHead(response: NodeResponse, late: LateFields): void {
  const { writeHead } = sinkOf(response);
  sinkOf(response).writeHead = (...given) => {
    late.begin([...headersOf(sinkOf(response)), ...given.flatMap(givenHeaders)]);
    return writeHead.apply(response, given);
  };
}
