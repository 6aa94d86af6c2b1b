// The diagrams of the docs.
import { arrow, box, rect, svg, text } from "./svg.mjs";

/** @typedef {import("./svg.mjs").Picture} Picture */

/** @returns {Picture} */
function requestFlow() {
  return {
    width: 960,
    height: 420,
    title: "Request flow through near tier and store",
    description:
      "A call looks into the near tier (L1), then into the shared store (L2). A miss in both joins a load in flight, or takes the lease and runs your function. The result is stored if the lease still holds, and the store pushes the change to other processes.",
    body: [
      rect("lane", 20, 20, 640, 380, 8),
      text("head", 40, 50, "Your process"),
      rect("lane", 680, 20, 260, 380, 8),
      text("head", 700, 50, "Shared"),
      box("box", 40, 90, 150, 56, "getOrSet", "or cached()"),
      arrow("M190 118 H255"),
      box("entry", 260, 90, 170, 56, "near tier (L1)", "decoded values"),
      arrow("M430 118 H695"),
      text("dim", 545, 110, "miss: one read,", "middle"),
      text("dim", 545, 136, "pipelined with others", "middle"),
      box("entry", 700, 90, 220, 56, "store (L2)", "Redis, Valkey, disk"),
      arrow("M345 146 V186 H115 V151"),
      text("dim", 225, 205, "hit: no round trip", "middle"),
      arrow("M810 146 V226 H90 V151"),
      text("dim", 500, 218, "hit: decoded, kept in L1"),
      arrow("M870 146 V286 H595"),
      text("dim", 745, 278, "miss in both", "middle"),
      box("stamp", 400, 258, 190, 56, "single flight", "join the load in flight"),
      arrow("M400 286 H335"),
      text("dim", 368, 304, "first", "middle"),
      text("dim", 368, 320, "caller", "middle"),
      box("good", 160, 258, 170, 56, "your function", "runs once"),
      arrow("M245 314 V366 H695"),
      text("dim", 470, 358, "stored only if the lease still holds", "middle"),
      text("dim", 470, 384, "every waiting caller gets the value or the error", "middle"),
      box("entry", 700, 338, 220, 52, "new entry", "pushed to other processes"),
    ],
  };
}

/** @returns {Picture} */
function stampede() {
  const callers = (/** @type {number} */ y, /** @type {string} */ name) =>
    box("box", 40, y, 170, 44, name, "250 callers");
  const right = (/** @type {number} */ y, /** @type {string} */ name) =>
    box("box", 510, y, 170, 44, name, "250 callers");
  const names = ["process 1", "process 2", "process 3", "process 4"];
  return {
    width: 960,
    height: 370,
    title: "A cache stampede, with and without request coalescing",
    description:
      "Left: a hot key expires and every caller of every process queries the database. Right: callers of a process share one load, processes wait for the lease of the one that loads, and the database sees one query.",
    body: [
      rect("lane", 20, 20, 450, 330, 8),
      text("head", 40, 50, "Without: a thundering herd"),
      ...names.map((name, index) => callers(76 + index * 56, name)),
      ...names.flatMap((_, index) =>
        [-12, 0, 12].map((shift) => arrow(`M210 ${98 + index * 56 + shift} L325 ${176 + index * 5 + shift}`)),
      ),
      box("bad", 330, 150, 120, 70, "database", "1,000 queries"),
      text("dim", 40, 332, "A hot key expires: every caller misses and loads."),
      rect("lane", 490, 20, 450, 330, 8),
      text("head", 510, 50, "With xcache: single flight"),
      ...names.map((name, index) => right(76 + index * 56, name)),
      arrow("M680 98 H795 V145"),
      text("dim", 738, 88, "takes the lease", "middle"),
      ...names.slice(1).map((_, index) => `<path class="line dashed" d="M680 ${154 + index * 56} H712"/>`),
      arrow("M712 266 V103", true),
      text("dim", 725, 246, "wait for the result"),
      box("good", 735, 150, 185, 70, "database", "1 query"),
      text("dim", 510, 332, "One load; its value or its error goes to all 1,000 callers."),
    ],
  };
}

/** @returns {Picture} */
function invalidationRace() {
  const lane = (/** @type {number} */ y, /** @type {string} */ name) => [
    text("ink", 40, y + 5, name),
    `<path class="line" d="M130 ${y} H920" opacity="0.35"/>`,
  ];
  return {
    width: 960,
    height: 500,
    title: "An invalidation against a load in flight",
    description:
      "Above: a reader loads the old row, a writer changes it and deletes the key, the reader stores the old row, which is served until its TTL ends. Below: the invalidation revokes the reader's lease, so the old row is returned to its own callers and not stored; the next call loads the new row.",
    body: [
      rect("lane", 20, 20, 920, 220, 8),
      text("head", 40, 50, "Get, load, set by hand"),
      ...lane(100, "reader"),
      ...lane(150, "writer"),
      ...lane(200, "cache"),
      box("box", 150, 84, 130, 32, "reads old row"),
      box("box", 320, 134, 130, 32, "writes new row"),
      box("box", 480, 134, 110, 32, "deletes key"),
      arrow("M535 166 V182"),
      box("box", 480, 184, 110, 32, "empty"),
      box("box", 620, 84, 130, 32, "stores old row"),
      arrow("M685 116 V182"),
      box("bad", 620, 184, 300, 32, "old row, until the TTL ends"),
      rect("lane", 20, 260, 920, 220, 8),
      text("head", 40, 290, "xcache"),
      ...lane(340, "reader"),
      ...lane(390, "writer"),
      ...lane(440, "cache"),
      box("box", 150, 324, 130, 32, "reads old row"),
      arrow("M215 356 V422"),
      box("stamp", 150, 424, 130, 32, "lease, 7f3a"),
      box("box", 320, 374, 130, 32, "writes new row"),
      box("box", 480, 374, 110, 32, "invalidates"),
      arrow("M535 406 V422"),
      box("stamp", 480, 424, 110, 32, "stamp c91e"),
      box("box", 620, 324, 130, 32, "tries to store"),
      arrow("M685 356 V422"),
      box("good", 620, 424, 130, 32, "refused"),
      box("box", 780, 324, 140, 32, "next call loads"),
      arrow("M850 356 V422"),
      box("entry", 780, 424, 140, 32, "new row, c91e"),
    ],
  };
}

/** @returns {Picture} */
function circuitBreaker() {
  return {
    width: 960,
    height: 350,
    title: "Circuit breaker and outbox while the store is away",
    description:
      "Closed: calls use the store. The store fails: each call waits at most operation_timeout, then your function answers. After five failures in a row the circuit opens: calls go straight to your function, invalidations are kept in the outbox. When a connection succeeds, the outbox is delivered first and the circuit closes.",
    body: [
      rect("lane", 20, 20, 920, 310, 8),
      text("head", 40, 50, "Store"),
      box("good", 150, 34, 170, 34, "up"),
      box("bad", 322, 34, 428, 34, "down"),
      box("good", 752, 34, 168, 34, "up again"),
      text("head", 40, 120, "Circuit"),
      box("box", 150, 94, 170, 50, "closed", "calls use the store"),
      box("stamp", 322, 94, 180, 50, "five failures in a row", "1 s each at most"),
      box("bad", 504, 94, 246, 50, "open", "one probe every 30 s"),
      box("box", 752, 94, 168, 50, "closed", "once it connects"),
      text("head", 40, 196, "Calls"),
      box("entry", 150, 170, 170, 50, "hits and loads", "from the store"),
      box("good", 322, 170, 428, 50, "your function answers", "stale values where you allow them"),
      box("entry", 752, 170, 168, 50, "hits and loads", "from the store"),
      text("head", 40, 272, "Outbox"),
      box("box", 150, 246, 170, 50, "empty", "invalidated at once"),
      box("stamp", 322, 246, 428, 50, "keeps pending invalidations", "what they concern is not served"),
      box("good", 752, 246, 168, 50, "delivered first", "then served again"),
      arrow("M150 315 H920"),
      text("dim", 40, 320, "time"),
    ],
  };
}

/** @returns {Picture} */
function httpDecision() {
  const RIGHT = { arrow: "M630", end: "H695", text: 660, box: 700 };
  const LEFT = { arrow: "M330", end: "H265", text: 298, box: 40 };
  /**
   * A question, the outcome of one answer at its side, and the other answer, which leads down.
   * @param {number} y
   * @param {readonly [string, string]} question
   * @param {typeof LEFT} side
   * @param {"yes" | "no"} answer
   * @param {readonly [kind: string, first: string, second: string]} outcome
   */
  const decision = (y, question, side, answer, [kind, ...outcome]) => [
    box("stamp", 330, y, 300, 52, ...question),
    arrow(`${side.arrow} ${y + 26} ${side.end}`),
    text("dim", side.text, y + 18, answer, "middle"),
    box(kind, side.box, y, 220, 52, ...outcome),
    arrow(`M480 ${y + 52} V${y + 88}`),
    text("dim", 490, y + 75, answer === "yes" ? "no" : "yes"),
  ];
  return {
    width: 960,
    height: 640,
    title: "How the HTTP cache decides",
    description:
      "A request that is not GET or HEAD, or that carries credentials nobody accounts for, goes to the handler. A fresh stored response is sent. A stale one within its window is sent while one call refreshes it. Otherwise one request calls the handler, others wait, and the response is stored if it may be.",
    body: [
      rect("lane", 20, 20, 920, 600, 8),
      box("box", 400, 36, 160, 38, "request"),
      arrow("M480 74 V98"),
      ...decision(100, ["GET or HEAD?", "and not excluded or skipped"], RIGHT, "no", [
        "box",
        "handler",
        "success invalidates the URL",
      ]),
      ...decision(190, ["credentials?", "without user or shared"], RIGHT, "yes", [
        "box",
        "handler: bypass",
        "detail=cookie and so on",
      ]),
      ...decision(280, ["stored and fresh?", "same URL, same Vary fields"], LEFT, "yes", [
        "good",
        "hit",
        "200, 206 or 304",
      ]),
      ...decision(370, ["stale, within its window?", "stale-while-revalidate"], LEFT, "yes", [
        "good",
        "stale response",
        "one refresh behind it",
      ]),
      ...decision(460, ["is it being filled?", "by another request"], LEFT, "yes", [
        "entry",
        "wait for that response",
        "fillTimeout at most",
      ]),
      box("box", 330, 550, 300, 52, "handler runs once", "its answer is streamed"),
      arrow("M630 576 H695"),
      box(
        "entry",
        700,
        532,
        220,
        80,
        "stored, unless",
        "Set-Cookie, private, no-store,",
        "Vary: *, status not 200",
      ),
    ],
  };
}

/** @returns {Picture} */
function topology() {
  const process = (/** @type {number} */ x, /** @type {string} */ name) => [
    rect("box", x, 40, 220, 120),
    text("ink", x + 110, 66, name, "middle"),
    box("entry", x + 20, 84, 180, 58, "near tier (L1)", "values and stamps"),
  ];
  return {
    width: 960,
    height: 440,
    title: "Processes, Redis and pushes",
    description:
      "Each process has a near tier and one connection to Redis or Valkey. Reads and writes go down, the server pushes changes of what the process holds up the same connection. One process leads the database feed: commits of any program become invalidations.",
    body: [
      rect("lane", 20, 20, 920, 160, 8),
      ...process(60, "web process"),
      ...process(370, "web process"),
      ...process(680, "worker, feed leader"),
      ...[150, 460, 770].map((x) => `${arrow(`M${x} 160 V243`)}${arrow(`M${x + 40} 245 V163`, true)}`),
      text("dim", 138, 212, "reads, writes", "end"),
      text("dim", 202, 212, "pushes"),
      text("dim", 512, 212, "CLIENT TRACKING"),
      rect("lane", 60, 248, 840, 80, 8),
      text("head", 80, 278, "Redis or Valkey (L2)"),
      text("dim", 80, 306, "entries, leases and the stamps of tags; one server, sentinels or a cluster"),
      rect("lane", 60, 360, 560, 60, 8),
      text("head", 80, 396, "Database"),
      text("dim", 180, 395, "commits of any program"),
      '<path class="line dashed" d="M620 390 H925 V110"/>',
      arrow("M925 112 H903", true),
      text("dim", 640, 381, "logical replication feeds the leader"),
    ],
  };
}

const DIAGRAMS = {
  "request-flow": requestFlow,
  stampede,
  "invalidation-race": invalidationRace,
  "circuit-breaker": circuitBreaker,
  "http-decision": httpDecision,
  topology,
};

/** Every diagram, by its path from the root of the repository. */
export const diagrams = () =>
  Object.fromEntries(
    Object.entries(DIAGRAMS).map(([name, draw]) => [`docs/images/${name}.svg`, svg(draw())]),
  );
