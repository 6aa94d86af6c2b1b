// Makes a socket to a server, plain or TLS, within its time.
import { connect as connectPlain, isIP, type OnReadOpts, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Clock } from "../../../core/clock.ts";
import type { XCacheError } from "../../../core/errors.ts";
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

/** Takes what arrives, so many bytes. Returns whether any of them are held; if not, the next ones come in their place. */
export type Intake = (bytes: Buffer, length: number) => boolean;

/** As much as Node reads at once. */
const ARRIVAL_BYTES = 64 * 1024;

/** Rejects with ConnectionError, OperationTimeoutError or the signal's reason. */
export function openSocket(
  settings: SocketSettings,
  intake: Intake,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  const { endpoint, tls, clock, connectTimeoutMs } = settings;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const target = { ...endpoint, onread: arrivals(intake) };
    const socket = tls === undefined ? connectPlain(target) : secureSocket(target, tls);
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

type Target = Endpoint & { readonly onread: OnReadOpts };

/** Without a stream in between and, as long as nothing of it is held, in the same memory every time. */
function arrivals(intake: Intake): OnReadOpts {
  let memory = Buffer.allocUnsafeSlow(ARRIVAL_BYTES);
  return {
    buffer: () => memory,
    callback: (length) => {
      if (intake(memory, length)) memory = Buffer.allocUnsafeSlow(ARRIVAL_BYTES);
      return true;
    },
  };
}

/** The name of the server is sent, unless it is an address, for which TLS has no place. */
function secureSocket(endpoint: Target, tls: ConnectionOptions): Socket {
  const name = "host" in endpoint && isIP(endpoint.host) === 0 ? { servername: endpoint.host } : {};
  try {
    return connectTls({ ...endpoint, ...name, ...tls });
  } catch (cause) {
    throw tlsUnusable(endpoint, cause);
  }
}
