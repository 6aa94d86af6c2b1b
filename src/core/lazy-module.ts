// Code that is imported when it is first needed. Calls made before it is there wait, and begin in their order.
import { CallerContext, outsideCallers } from "./async-context.ts";

interface WaitingCall<Code> {
  readonly context: CallerContext;
  begin(code: Code): void;
  failed(error: unknown): void;
}

/** One for all users of the code. */
export class LazyModule<Code> {
  readonly #import: () => Promise<Code>;
  #importing: Promise<Code> | undefined;
  #waiting: WaitingCall<Code>[] = [];
  loaded: Code | undefined;

  constructor(importing: () => Promise<Code>) {
    this.#import = importing;
  }

  /** The code is loaded and no earlier call waits: a call may begin at once. */
  get isReady(): boolean {
    return this.loaded !== undefined && this.#waiting.length === 0;
  }

  /** A failed import is tried again by the next call. */
  async load(): Promise<Code> {
    if (this.loaded !== undefined) return this.loaded;
    this.#importing ??= outsideCallers(() => this.#load());
    return this.#importing;
  }

  /** Begins now if the code is loaded; else when it is, in the caller's context and after all earlier calls. */
  call<T>(begin: (code: Code) => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        context: new CallerContext(),
        begin: (code) => {
          try {
            resolve(begin(code));
          } catch (error) {
            reject(error as Error);
          }
        },
        failed: reject,
      });
      if (this.loaded === undefined) this.load().catch(() => {});
      else if (this.#waiting.length === 1) this.#begin(this.loaded);
    });
  }

  async #load(): Promise<Code> {
    try {
      const code = await this.#import();
      this.loaded = code;
      this.#begin(code);
      return code;
    } catch (error) {
      for (const { context, failed } of this.#waiting.splice(0))
        context.runInAsyncScope(failed, undefined, error);
      throw error;
    } finally {
      this.#importing = undefined;
    }
  }

  /** Calls made by these calls begin after them. */
  #begin(code: Code): void {
    for (const { context, begin } of this.#waiting) context.runInAsyncScope(begin, undefined, code);
    this.#waiting = [];
  }
}
