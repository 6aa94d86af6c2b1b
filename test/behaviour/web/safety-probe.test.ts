// Hostile requests and pages of one user, on every adapter: nothing of the first request may reach the second.
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import {
  ADAPTERS,
  type Answer,
  type Ask,
  listenHttp2,
  ON_HTTP2,
  type Script,
  type Subject,
  subject,
} from "./subject.ts";

/** What the first request brings, and the second must not see. */
const MARK = "marked";

interface Probe {
  /** After the path of the probe. */
  readonly suffix?: string;
  readonly first?: Ask;
  /** The first request as bytes, without Connection; `PATH` stands for the path. */
  readonly raw?: string;
  readonly second?: Ask & { readonly suffix?: string };
  /** What the handler answers to the first request; its body shows what it saw. */
  readonly answer?: Answer;
  /** Whether the body has the mark of itself. */
  readonly isMarked?: boolean;
}

const header = (name: string, value = MARK): Probe => ({ first: { headers: { [name]: value } } });
const path = (suffix: string): Probe => ({ suffix, isMarked: true });
const marked = (answer: Answer): Probe => ({ answer, isMarked: true });
const says = (value: string): Probe => marked({ headers: { "cache-control": value } });
const raw = (head: string, body = ""): Probe => ({ raw: `${head}\r\n\r\n${body}` });

const PROBES: Record<string, Probe> = {
  "X-Forwarded-Host": header("x-forwarded-host"),
  "two X-Forwarded-Host": raw(
    `GET PATH HTTP/1.1\r\nhost: site.test\r\nx-forwarded-host: a\r\nx-forwarded-host: ${MARK}`,
  ),
  "X-Forwarded-Proto": header("x-forwarded-proto"),
  "X-Forwarded-Scheme": header("x-forwarded-scheme"),
  "X-Forwarded-Port": header("x-forwarded-port"),
  "X-Forwarded-Prefix": header("x-forwarded-prefix"),
  "X-Forwarded-Server": header("x-forwarded-server"),
  Forwarded: header("forwarded", `host=${MARK}`),
  "X-Host": header("x-host"),
  "X-Original-URL": header("x-original-url", `/${MARK}`),
  "X-Rewrite-URL": header("x-rewrite-url", `/${MARK}`),
  "X-HTTP-Method-Override": header("x-http-method-override"),
  "X-Requested-With": header("x-requested-with"),
  "another host": header("host", `${MARK}.test`),
  "a host with a dot at its end": { ...header("host", "site.test."), isMarked: true },
  "a host with a port": { ...header("host", "site.test:81"), isMarked: true },
  "a host with a user": { ...header("host", `${MARK}@site.test`), isMarked: true },
  "a target in absolute form": raw(
    `GET http://${MARK}.test PATH HTTP/1.1\r\nhost: site.test`.replace(" PATH", "PATH"),
  ),
  "an absolute target of this host": raw(`GET http://${MARK}@site.testPATH HTTP/1.1\r\nhost: site.test`),
  "an absolute target of this host with another Host": raw(
    `GET http://site.testPATH HTTP/1.1\r\nhost: ${MARK}.test`,
  ),
  "HTTP/1.0 without a host": raw(`GET PATH HTTP/1.0\r\nx-forwarded-host: ${MARK}`),
  "two lines of Host": raw(`GET PATH HTTP/1.1\r\nhost: ${MARK}.test\r\nhost: site.test`),
  "a line feed in a value": raw(`GET PATH HTTP/1.1\r\nhost: site.test\r\nx-a: b\nx-forwarded-host: ${MARK}`),
  "a folded line": raw(`GET PATH HTTP/1.1\r\nhost: site.test\r\nx-a: b\r\n x-forwarded-host: ${MARK}`),
  "a POST": { first: { method: "POST", body: MARK }, isMarked: true },
  "a HEAD": { first: { method: "HEAD" }, isMarked: true },
  "an unknown method": { first: { method: "M-SEARCH" }, isMarked: true },
  "a GET with content": {
    ...raw(`GET PATH HTTP/1.1\r\nhost: site.test\r\ncontent-length: ${MARK.length}`, MARK),
    isMarked: true,
  },
  "a GET in chunks without an end": {
    ...raw("GET PATH HTTP/1.1\r\nhost: site.test\r\ntransfer-encoding: chunked", `6\r\n${MARK}\r\n`),
    isMarked: true,
  },
  "a length that is announced twice": raw(
    `GET PATH HTTP/1.1\r\nhost: site.test\r\ncontent-length: 0\r\ncontent-length: 6\r\nx-host: ${MARK}`,
  ),
  "a Range": {
    first: { headers: { range: "bytes=0-0" } },
    isMarked: true,
    answer: { status: 206, headers: { "content-range": "bytes 0-0/9" } },
  },
  "a 206 without a Range": marked({ status: 206, headers: { "content-range": "bytes 0-6/9" } }),
  "a 304 without a condition": marked({ status: 304 }),
  "If-None-Match": { first: { headers: { "if-none-match": "*" } }, answer: { status: 304 }, isMarked: true },
  "If-Match": { first: { headers: { "if-match": '"none"' } }, isMarked: true, answer: { status: 412 } },
  "only-if-cached": { first: { headers: { "cache-control": "only-if-cached" } }, isMarked: true },
  "no-store in the request": { first: { headers: { "cache-control": "no-store" } }, isMarked: true },
  Upgrade: { first: { headers: { connection: "upgrade", upgrade: "websocket" } }, isMarked: true },
  Authorization: header("authorization", `Bearer ${MARK}`),
  Cookie: header("cookie", `session=${MARK}`),
  "Proxy-Authorization": header("proxy-authorization"),
  "X-Api-Key": header("x-api-key"),
  "X-Auth-Request-Email": header("x-auth-request-email"),
  "Set-Cookie": marked({ headers: { "set-cookie": `session=${MARK}` } }),
  private: says("private, max-age=600"),
  'private="x-user"': says('private="x-user", max-age=600'),
  "no-store": says("max-age=600, no-store"),
  "no-cache": says("no-cache"),
  'no-cache="set-cookie"': says('no-cache="set-cookie", max-age=600'),
  "a Cache-Control with an open quote": says('max-age=600, ext="private'),
  "private with a semicolon": says("private; max-age=600"),
  "private after a semicolon": says("max-age=600; Private"),
  "no-store with a semicolon": says("no-store;no-cache"),
  "no-store with a blank": says("max-age=600 no-store"),
  "no-cache with a slash": says("public/no-cache"),
  "Vary: *": marked({ headers: { vary: "*" } }),
  "Vary: Accept, *": marked({ headers: { vary: ["Accept", "*"] } }),
  "Vary: User-Agent": {
    first: { headers: { "user-agent": MARK } },
    answer: { headers: { vary: "User-Agent" } },
    second: { headers: { "user-agent": "other" } },
    isMarked: true,
  },
  "Vary: Accept-Encoding": {
    first: { headers: { "accept-encoding": "br" } },
    answer: { headers: { vary: "accept-encoding" } },
    isMarked: true,
  },
  "Vary: X-Forwarded-For": {
    first: { headers: { "x-forwarded-for": MARK } },
    answer: { headers: { vary: "X-Forwarded-For" } },
  },
  "a nonce": marked({ headers: { "content-security-policy": "script-src 'nonce-abc'" } }),
  "a page of an error": marked({ status: 500, headers: { "cache-control": "max-age=600" } }),
  "a page that is not found": marked({ status: 404 }),
  "a redirect": marked({ status: 302, headers: { location: `http://${MARK}.test/` } }),
  "an event stream": marked({ headers: { "content-type": "text/event-stream" } }),
  "a double slash": path("//"),
  "a slash at the end": path("/"),
  "a dot segment": path("/./"),
  "an encoded dot segment": path("/%2e%2e/x"),
  "a style sheet": path("/x.css"),
  "a parameter of the path": path(";x.css"),
  "an encoded null": path("%00.css"),
  "an encoded fragment": path("%23.css"),
  "an encoded line feed": path("%0d%0ax-host:evil"),
  "a query": path(`?x=${MARK}`),
  "an empty query": path("?"),
  "another order of the query": { suffix: "?a=1&b=2", second: { suffix: "?b=2&a=1" }, isMarked: true },
};

const ON_HTTP2_ONLY: Record<string, Probe> = {
  "a Host other than the authority": {
    first: { headers: { ":authority": "site.test", host: `${MARK}.test` } },
  },
};

/** Shows everything a handler may trust. */
const SHOWN =
  /^(?:host|forwarded|x-host|x-forwarded-.*|x-original-url|x-rewrite-url|x-http-method-override|x-requested-with|authorization|proxy-authorization|cookie|x-api-key|x-auth-request-email|x-a)$/;

/** The request on its way: its answer, if it is the first of a probe. */
interface Turn {
  answer: Answer;
  mark: string;
}

const handler =
  (turn: Turn): Script =>
  ({ url, method, headers }) => {
    const seen = Object.entries(headers).filter(([name]) => SHOWN.test(name));
    return { ...turn.answer, body: `${method} ${url} ${JSON.stringify(seen)} ${turn.mark}` };
  };

/** Sends bytes, and waits for an answer or the end of the connection. */
function sendRaw(port: number, text: string): Promise<void> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.once("data", () => socket.destroy());
    socket.once("error", () => {});
    socket.once("close", () => done());
  });
}

/** Sends requests on streams of one connection. */
function clientOfHttp2(port: number): Client {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  return (path, { method = "GET", headers: { host = "site.test", ...headers } = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      const names = ":authority" in headers ? { host } : { ":authority": host };
      const fields = { ":path": path, ":method": method, ...names };
      const sent = session.request({ ...headers, ...fields } as Record<string, string>, {
        endStream: body === undefined,
      });
      if (body !== undefined) sent.end(body);
      let status = 0;
      let received = {};
      let text = "";
      sent.setEncoding("utf8");
      sent.on("response", ({ ":status": code = 0, ...rest }) => {
        status = code;
        received = rest;
      });
      sent.on("data", (part: string) => {
        text += part;
      });
      sent.on("error", reject);
      sent.on("close", () => resolve({ status, headers: received, body: text }));
    });
}

interface Got {
  readonly status: number;
  readonly headers: object;
  readonly body: string;
}

type Client = (path: string, asked?: Ask) => Promise<Got>;

interface Open {
  readonly ask: Client;
  readonly port: number;
}

async function tryOne({ ask, port }: Open, turn: Turn, at: number, probe: Probe): Promise<string> {
  const path = `/probe-${at}`;
  Object.assign(turn, { answer: probe.answer ?? {}, mark: probe.isMarked ? MARK : "" });
  if (probe.raw !== undefined) await sendRaw(port, probe.raw.replace("PATH", path));
  // Some of these have no answer that a client accepts.
  else await ask(path + (probe.suffix ?? ""), probe.first).catch(() => {});
  Object.assign(turn, { answer: {}, mark: "" });
  const { suffix = "", ...second } = probe.second ?? {};
  const { body, headers, status } = await ask(path + suffix, second);
  return JSON.stringify([status, headers, body]);
}

/** The probes that leak, and how often the handler was called for two visits of one page. */
async function tryAll(
  { calls }: Subject,
  open: Open,
  turn: Turn,
  probes: readonly (readonly [string, Probe])[],
): Promise<{ readonly leaks: string[]; readonly calls: number }> {
  const leaks: string[] = [];
  for (const [at, [name, probe]] of probes.entries()) {
    const got = await tryOne(open, turn, at, probe).catch((error: Error) => `${MARK}: ${error.message}`);
    if (got.includes(MARK)) leaks.push(`${name}: ${got}`);
  }
  const before = calls.length;
  for (let visit = 0; visit < 2; visit++) await open.ask("/probe-0?plain");
  return { leaks, calls: calls.length - before };
}

/** Nothing leaks, and not because nothing is stored. */
const SAFE = { leaks: [], calls: 1 };

test.each(ADAPTERS)("on %s nothing of a hostile or personal request reaches another", async (adapter) => {
  const turn: Turn = { answer: {}, mark: "" };
  const open = await subject(adapter, handler(turn));
  expect(await tryAll(open, open, turn, Object.entries(PROBES))).toEqual(SAFE);
});

test.each(ON_HTTP2)("nor does it on %s with HTTP/2", async (adapter) => {
  const turn: Turn = { answer: {}, mark: "" };
  const open = await subject(adapter, handler(turn), {}, undefined, listenHttp2);
  const { port } = open;
  // Bytes on a connection of HTTP/1.1 mean nothing here.
  const probes = Object.entries({ ...PROBES, ...ON_HTTP2_ONLY }).filter(([, { raw }]) => raw === undefined);
  expect(await tryAll(open, { ask: clientOfHttp2(port), port }, turn, probes)).toEqual(SAFE);
});
