// Opens a socket to a server, plain or TLS, within connect_timeout.
import { connect as connectPlain, isIP, type OnReadOpts, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { outsideCallers } from "../../core/async-context.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { XCacheError } from "../../core/errors.ts";
import { nodeTls } from "../../core/lazy-builtin.ts";
import { connectTimedOut, speaksPlain, TLS_ALERT, tlsUnusable } from "./connection-error.ts";

/** Where a server listens. */
export type Endpoint = { readonly host: string; readonly port: number } | { readonly path: string };

/** As it would be written in a URL. */
export function nameOf(endpoint: Endpoint): string {
  if ("path" in endpoint) return endpoint.path;
  return `${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
}

export interface SocketSettings {
  readonly endpoint: Endpoint;
  /** Undefined: no TLS. */
  readonly tls?: ConnectionOptions | undefined;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  /** When the attempt began that connect_timeout bounds. Default: now. */
  readonly since?: number;
  /** Idle time before the system probes the connection; 0: it does not. Default: 5 seconds. */
  readonly keepAliveMs?: number | undefined;
  /** Never keeps the process alive, not even while a reply is awaited. Default: false. */
  readonly background?: boolean;
}

/** Takes `length` bytes that arrived. Returns whether any of them are still referenced; if not, the memory is reused. */
export type Intake = (bytes: Buffer, length: number) => boolean;

export interface SocketOwner {
  /** The server's address, for messages. */
  readonly name: string;
  readonly signal: AbortSignal | undefined;
  /** Gets the bytes directly from the socket, in place of its "data" events; may be replaced by another. */
  intake?: Intake;
  /** The error for a socket that failed; `cause` undefined: the server closed it. */
  lost(cause: Error | undefined): XCacheError;
}

/** Node's own read size. */
const READ_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 5_000;
/** A server without TLS waits for the rest of what it takes for a command: after this long without an answer it is asked. */
const SILENCE_MS = 200;

/** Rejects with ConnectionError, OperationTimeoutError or the signal's reason. */
export function openSocket(settings: SocketSettings, owner: SocketOwner): Promise<Socket> {
  return outsideCallers(() => open(settings, owner));
}

function open(settings: SocketSettings, owner: SocketOwner): Promise<Socket> {
  const { endpoint, tls, clock, connectTimeoutMs } = settings;
  const { name, signal } = owner;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const target = owner.intake === undefined ? { ...endpoint } : { ...endpoint, onread: readsInto(owner) };
    const socket = tls === undefined ? connectPlain(target) : secureSocket(name, target, tls);
    if (settings.background) socket.unref();
    let isAccepted = false;
    let silence: Timer | undefined;
    let probe: Socket | undefined;
    const settle = (error?: XCacheError): void => {
      timer.cancel();
      silence?.cancel();
      probe?.destroy();
      signal?.removeEventListener("abort", abort);
      socket.off("close", end);
      if (error === undefined) {
        // An idle connection does not keep the process alive; the replies awaited on it do.
        socket.unref();
        socket.setNoDelay(true);
        const keepAliveMs = settings.keepAliveMs ?? KEEP_ALIVE_MS;
        socket.setKeepAlive(keepAliveMs > 0, keepAliveMs);
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(error);
    };
    const abort = (): void => settle(signal?.reason);
    const end = (): void => settle(owner.lost(undefined));
    const now = clock.now();
    const leftMs = Math.max(0, connectTimeoutMs - (now - (settings.since ?? now)));
    const timer = clock.after(leftMs, () => settle(connectTimedOut(name, connectTimeoutMs, isAccepted)));
    signal?.addEventListener("abort", abort);
    socket.once("connect", () => {
      isAccepted = true;
      if (tls === undefined) settle();
      else
        silence = clock.after(SILENCE_MS, () => {
          probe = probePlain(settings, () => settle(speaksPlain(name)));
        });
    });
    if (tls !== undefined) socket.once("secureConnect", () => settle());
    // Stays for good: an "error" event without a listener would be thrown.
    socket.on("error", (error) => settle(owner.lost(error)));
    socket.on("close", end);
  });
}

/** Calls `isPlain` if the server answers a plain PING, which a TLS server takes for a broken handshake. Sends no credentials. */
function probePlain({ endpoint, background }: SocketSettings, isPlain: () => void): Socket {
  const probe = connectPlain({ ...endpoint });
  if (background) probe.unref();
  probe.on("connect", () => probe.write("PING\r\n"));
  probe.on("data", (bytes) => {
    // A TLS server answers with an alert, which begins with 21 (RFC 8446, section 5.1).
    if (bytes[0] !== TLS_ALERT) isPlain();
    probe.destroy();
  });
  probe.on("error", () => {});
  return probe;
}

/**
 * Ends a connection. `isOwed`: replies are awaited. Unless the cache was disconnected, it is then reset: what the kernel has
 * not sent yet is dropped instead of being executed after its caller was given an error.
 */
export function endSocket(socket: Socket, reason: XCacheError, isOwed: boolean): void {
  try {
    if (isOwed && reason.code !== "DISCONNECTED") {
      socket.resetAndDestroy();
      return;
    }
  } catch {
    // Node resets TCP only: not TLS, not a unix socket.
  }
  socket.destroy();
}

type Target = Endpoint & { readonly onread?: OnReadOpts };

/** Bypasses the stream, and reads into the same memory until the intake keeps a reference to it. */
function readsInto(owner: SocketOwner): OnReadOpts {
  let memory = Buffer.allocUnsafeSlow(READ_BYTES);
  return {
    buffer: () => memory,
    callback: (length) => {
      if (owner.intake?.(memory, length)) memory = Buffer.allocUnsafeSlow(READ_BYTES);
      return true;
    },
  };
}

/** Sends the host as server name (SNI) unless it is an IP address, which RFC 6066, section 3, does not allow there. */
function secureSocket(name: string, target: Target, tls: ConnectionOptions): Socket {
  const servername = "host" in target && isIP(target.host) === 0 ? { servername: target.host } : {};
  try {
    return nodeTls().connect({ ...target, ...servername, ...tls });
  } catch (cause) {
    throw tlsUnusable(name, cause);
  }
}
