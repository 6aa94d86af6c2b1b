// A process with its own semantic cache, which evaluates the code it is sent.
import { OwnProcess } from "../../support/own-process.ts";

const PROGRAM = `
import { SemanticCache } from "./vector/index.js";
import { XCache } from "./index.js";
const { kvUrl, nearCache, exactUpTo } = settings;
const cache = new XCache({ kvUrl, nearCache, operationTimeout: 10 });
const answers = new SemanticCache({ cache, namespace: "faq", threshold: 0.6, exactUpTo });
const AsyncFunction = (async () => {}).constructor;
for (;;) {
  const { code } = await nextMessage();
  if (code === undefined) break;
  const result = await new AsyncFunction("answers", "cache", code)(answers, cache).catch((error) => "failed: " + error);
  say("result", { result: result ?? null });
}
await cache.disconnect();
`;

export class VectorProcess extends OwnProcess {
  constructor(settings: {
    readonly kvUrl: string;
    readonly nearCache?: boolean;
    readonly exactUpTo?: number;
  }) {
    super(PROGRAM, { settings });
  }

  /** `code` is the body of an async function with `answers` and `cache`. Resolves with its result. */
  async run(code: string): Promise<unknown> {
    this.tell({ code });
    return (await this.heard("result")).result;
  }

  /** Lets it disconnect and exit. Resolves with its exit code. */
  async end(): Promise<number | null> {
    this.tell();
    return (await this.ended()).code;
  }
}
