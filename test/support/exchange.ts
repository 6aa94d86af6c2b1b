// One request and the beginning of its reply over a fresh connection, for asking a server whether it is up.
import { connect as connectPlain } from "node:net";
import { connect as connectTls } from "node:tls";

export interface Peer {
  readonly port: number;
  /** Certificate authority; when present the connection is TLS. */
  readonly ca?: string;
  /** How long to bear silence. Default: 1,000. */
  readonly timeoutMs?: number;
}

/** Resolves with what arrived as soon as `isComplete` accepts it; rejects when the peer refuses, closes or is silent. */
export function exchange(
  peer: Peer,
  request: string,
  isComplete: (reply: string) => boolean,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const address = { host: "127.0.0.1", port: peer.port };
    const socket =
      peer.ca === undefined
        ? connectPlain(address)
        : connectTls({ ...address, ca: peer.ca, servername: "localhost" });
    const { timeoutMs = 1_000 } = peer;
    let reply = "";
    socket
      .setEncoding("utf8")
      .setTimeout(timeoutMs, () => socket.destroy(new Error(`no reply within ${timeoutMs} ms`)));
    socket.on("data", (chunk: string) => {
      reply += chunk;
      if (!isComplete(reply)) return;
      resolve(reply);
      socket.destroy();
    });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`closed after ${JSON.stringify(reply.slice(0, 80))}`)));
    socket.write(request);
  });
}
