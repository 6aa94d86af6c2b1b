// Watches a connection for statements that an application sends with the library's own objects, past the tracker.
import type { BypassListener } from "../../core/db-session.ts";
import { types } from "../../core/lazy-builtin.ts";

type Send = (...args: never[]) => unknown;

/** For libraries that do not expose the messages of their connection: the method that sends statements is watched instead. */
export class Bypass {
  #listener: BypassListener | undefined;
  #isOwn = false;

  listen(listener: BypassListener): void {
    this.#listener = listener;
  }

  /** Sends a statement of the tracker, which is not reported. */
  own<Result>(send: () => Result): Result {
    const outer = this.#isOwn;
    this.#isOwn = true;
    try {
      return send();
    } finally {
      this.#isOwn = outer;
    }
  }

  /** The same function, whose statements are reported before its caller gets their results. */
  watched<Method extends Send>(method: Method, textOf: (...args: Parameters<Method>) => unknown): Method {
    const report = (...args: Parameters<Method>) => this.#report(textOf(...args));
    const isOwn = () => this.#isOwn;
    const replaced = function (this: unknown, ...args: Parameters<Method>): unknown {
      if (isOwn()) return Reflect.apply(method, this, args);
      const reported = report(...args);
      const result: unknown = Reflect.apply(method, this, args);
      return types.isPromise(result) ? result.then(reported.executed, reported.failed) : result;
    };
    return replaced as Method;
  }

  /** Replaces a method of one object, once. */
  watch<Target extends object, Name extends keyof Target>(
    target: Target,
    name: Name,
    textOf: (...args: Target[Name] extends Send ? Parameters<Target[Name]> : never) => unknown,
  ): void {
    if (watching.get(target) === this) return;
    watching.set(target, this);
    const method = target[name] as Send;
    const value = this.watched(method, textOf as (...args: never[]) => unknown);
    Object.defineProperty(target, name, { value, configurable: true, writable: true });
  }

  #report(text: unknown) {
    const sql = typeof text === "string" ? text : undefined;
    return {
      executed: async <Result>(result: Result): Promise<Result> => {
        await this.#listener?.(sql, undefined);
        return result;
      },
      failed: async (error: unknown): Promise<never> => {
        await this.#listener?.(sql, { error });
        throw error;
      },
    };
  }
}

const watching = new WeakMap<object, Bypass>();
const bypasses = new WeakMap<object, Bypass>();

/** The one instance for a connection. */
export function bypassOf(connection: object): Bypass {
  const bypass = bypasses.get(connection) ?? new Bypass();
  bypasses.set(connection, bypass);
  return bypass;
}
