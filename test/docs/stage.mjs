// Loaded before the programs of a page: the usual ports lead to the servers of the test, and fixed ports to free ones.
import { Server, Socket } from "node:net";

/** @type {Record<string, number>} by the port that a page names */
const servers = JSON.parse(process.env.DOCS_SERVERS ?? "{}");
/** What the page's own programs listen on, by the port that they named. @type {Map<number, Server>} */
const listening = new Map();

const { connect } = Socket.prototype;
const { listen } = Server.prototype;

/**
 * Calls back with where a connection to `port` goes, at once or when a server of the page is there.
 * @param {number} port
 * @param {(port: number | undefined) => void} go
 */
function leadTo(port, go) {
  const own = listening.get(port);
  if (own === undefined) return go(servers[port]);
  const bound = () => /** @type {import("node:net").AddressInfo | null} */ (own.address())?.port;
  if (bound() !== undefined) return go(bound());
  own.once("listening", () => go(bound()));
}

Socket.prototype.connect = function (/** @type {unknown[]} */ ...args) {
  const given = /** @type {any} */ (Array.isArray(args[0]) ? args[0][0] : args[0]);
  const port = Number(typeof given === "object" ? given?.port : given);
  leadTo(port, (target) => {
    if (target !== undefined) {
      const place = { port: target, host: "127.0.0.1" };
      if (Array.isArray(args[0])) args[0][0] = { ...given, ...place };
      else if (typeof given === "object") args[0] = { ...given, ...place };
      else args.splice(0, typeof args[1] === "string" ? 2 : 1, place);
    }
    Reflect.apply(connect, this, args);
  });
  return this;
};

Server.prototype.listen = function (/** @type {unknown[]} */ ...args) {
  const given = /** @type {any} */ (args[0]);
  const port = Number(typeof given === "object" ? given?.port : given);
  if (port > 0) {
    listening.set(port, this);
    const place = { port: 0, host: "127.0.0.1" };
    if (typeof given === "object") args[0] = { ...given, ...place };
    else args.splice(0, typeof args[1] === "string" ? 2 : 1, place);
  }
  return Reflect.apply(listen, this, args);
};
