// Makes a socket to a server within its time.
import { connect, type Socket } from "node:net";
import type { HostPort } from "../../core/address/address.ts";
import type { Clock } from "../../core/clock.ts";
import type { XCacheError } from "../../core/errors.ts";
import { lost, notAccepted } from "./reply-error.ts";
import { nameOf } from "./ring.ts";

export interface SocketSettings {
  readonly endpoint: HostPort;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
}

/** Rejects with ConnectionError, OperationTimeoutError or the signal's reason. */
export function openSocket(settings: SocketSettings, signal: AbortSignal): Promise<Socket> {
  const { endpoint, clock, connectTimeoutMs } = settings;
  const name = nameOf(endpoint);
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const socket = connect({ host: endpoint.host, port: endpoint.port });
    const settle = (error?: XCacheError): void => {
      timer.cancel();
      signal.removeEventListener("abort", abort);
      socket.off("close", end);
      if (error === undefined) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(error);
    };
    const abort = (): void => settle(signal.reason);
    const end = (): void => settle(lost(name, undefined));
    const timer = clock.after(connectTimeoutMs, () => settle(notAccepted(name, connectTimeoutMs)));
    signal.addEventListener("abort", abort);
    socket.once("connect", () => settle());
    // It stays: an error must never be without a listener.
    socket.on("error", (error) => settle(lost(name, error)));
    socket.on("close", end);
  });
}
