// Stands in for src/backends/wire/socket.ts in the simulation: the real client runs on the simulated network.
import type { Socket } from "node:net";
import { connectTimedOut } from "../../src/backends/wire/connection-error.ts";
import type { SocketOwner, SocketSettings } from "../../src/backends/wire/socket.ts";
import type { Link, Network } from "./network.ts";

export { nameOf } from "../../src/backends/wire/socket.ts";

let current: Network | undefined;

/** The network of the schedule that runs now. */
export function useNetwork(network: Network): void {
  current = network;
}

/** The store's address in process `index`. */
export const addressOf = (index: number): string => `redis://p${index}:6379/0`;

export function openSocket({ endpoint, clock, connectTimeoutMs }: SocketSettings, owner: SocketOwner) {
  const network = current as Network;
  const process = "host" in endpoint ? Number(endpoint.host.slice(1)) : 0;
  return new Promise<Socket>((resolve, reject) => {
    const { signal } = owner;
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const settle = (): void => {
      timer.cancel();
      withdraw();
      signal?.removeEventListener("abort", abort);
    };
    const abort = (): void => {
      settle();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort);
    const timer = clock.after(connectTimeoutMs, () => {
      settle();
      network.refused(process);
      reject(connectTimedOut(owner.name, connectTimeoutMs, false));
    });
    const withdraw = network.attempt({
      process,
      accepted: (link) => {
        settle();
        resolve(new SimulatedSocket(network, link, owner) as unknown as Socket);
      },
      refused: (error) => {
        settle();
        network.refused(process);
        reject(owner.lost(error));
      },
    });
  });
}

/** What is on its way may still arrive, also after a reset. */
export function endSocket(socket: Socket): void {
  socket.destroy();
}

/** As much of a socket as the client uses. */
class SimulatedSocket {
  readonly writableNeedDrain = false;
  readonly #link: Link;
  readonly #network: Network;
  #isLost = false;
  readonly #listeners = new Map<string, ((error?: Error) => void)[]>();

  constructor(network: Network, link: Link, owner: SocketOwner) {
    this.#link = link;
    this.#network = network;
    link.end = {
      arrived: (bytes) => void owner.intake?.(bytes, bytes.length),
      closed: (error) => {
        this.#isLost = true;
        network.lost(link.process);
        for (const listener of this.#listeners.get(error === undefined ? "close" : "error") ?? [])
          listener(error);
      },
    };
  }

  on(event: string, listener: (error?: Error) => void): this {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
    return this;
  }

  write(bytes: Uint8Array): boolean {
    this.#link.write(bytes);
    return true;
  }

  destroy(): this {
    // The client gives it up.
    if (!this.#isLost) this.#network.lost(this.#link.process);
    this.#isLost = true;
    this.#link.destroy();
    return this;
  }
}
