// Makes a socket to a server, plain or TLS, within its time.
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Clock } from "../../core/clock.ts";
import type { XCacheError } from "../../core/errors.ts";
import { lost, notAccepted, tlsUnusable } from "./connection-error.ts";
import type { Endpoint } from "./endpoint.ts";

export interface SocketSettings {
  readonly endpoint: Endpoint;
  /** Undefined: no TLS. */
  readonly tls: ConnectionOptions | undefined;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  /** Never keeps the process alive, not even while an answer is awaited. Default: false. */
  readonly background?: boolean;
}

/** Rejects with ConnectionError, OperationTimeoutError or the signal's reason. */
export function openSocket(settings: SocketSettings, signal: AbortSignal | undefined): Promise<Socket> {
  const { endpoint, tls, clock, connectTimeoutMs } = settings;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const socket = tls === undefined ? connectPlain(endpoint) : secureSocket(endpoint, tls);
    if (settings.background) socket.unref();
    let accepted = false;
    const settle = (error?: XCacheError): void => {
      timer.cancel();
      signal?.removeEventListener("abort", abort);
      socket.off("close", end);
      if (error === undefined) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(error);
    };
    const abort = (): void => settle(signal?.reason);
    const end = (): void => settle(lost(endpoint, undefined, false));
    const timer = clock.after(connectTimeoutMs, () =>
      settle(notAccepted(endpoint, connectTimeoutMs, accepted)),
    );
    signal?.addEventListener("abort", abort);
    socket.once("connect", () => {
      accepted = true;
      if (tls === undefined) settle();
    });
    if (tls !== undefined) socket.once("secureConnect", () => settle());
    // It stays: an error must never be without a listener.
    socket.on("error", (error) => settle(lost(endpoint, error, false)));
    socket.on("close", end);
  });
}

/** The name of the server is sent, unless it is an address, for which TLS has no place. */
function secureSocket(endpoint: Endpoint, tls: ConnectionOptions): Socket {
  const name = "host" in endpoint && isIP(endpoint.host) === 0 ? { servername: endpoint.host } : {};
  try {
    return connectTls({ ...endpoint, ...name, ...tls });
  } catch (cause) {
    throw tlsUnusable(endpoint, cause);
  }
}
