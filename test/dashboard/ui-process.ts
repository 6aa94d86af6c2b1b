// `xcache ui` as a process of its own, and what a browser would ask it.
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { start } from "../behaviour/cli/installed.ts";
import { until } from "../support/until.ts";

export interface Answered {
  readonly status: number | undefined;
  readonly body: Record<string, unknown>;
}

export interface UiProcess {
  /** With the token. */
  readonly url: string;
  readonly origin: string;
  /** What it has written besides its address. */
  notes(): string;
  /** Headers that are given replace those of the page. */
  call(name: string, body?: object, headers?: Record<string, string>): Promise<Answered>;
  /** Opens a stream; `ended` resolves when the server has closed it. */
  open(name: string): Promise<{ readonly ended: Promise<unknown> }>;
  /** Presses Ctrl-C. Resolves with the exit code. */
  interrupted(): Promise<number | null>;
}

/** Resolves when it serves. */
export async function startUi(...args: readonly string[]): Promise<UiProcess> {
  const child = start(["ui", "--no-open", ...args]);
  const closed = once(child, "close");
  onTestFinished(() => void child.kill("SIGKILL"));
  let [output, notes] = ["", ""];
  child.stdout?.on("data", (part) => {
    output += part;
  });
  child.stderr?.on("data", (part) => {
    notes += part;
  });
  const found = await until(
    () => /^(http:\/\/127\.0\.0\.1:\d+)\/#token=([\w-]{32})\n$/.exec(output) ?? undefined,
    {
      what: "the address is printed",
      stopWhen: () => child.exitCode !== null,
    },
  );
  const [line, origin = "", token] = found;
  // Notes may arrive after the address.
  await until(() => notes.endsWith("\n"), { what: "the notes are printed" });
  const ask = async (
    name: string,
    body: object,
    headers: Record<string, string>,
  ): Promise<IncomingMessage> => {
    const asking = request(`${origin}/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
    });
    asking.end(JSON.stringify(body));
    return ((await once(asking, "response")) as [IncomingMessage])[0];
  };
  return {
    url: line.trimEnd(),
    origin,
    notes: () => notes,
    async call(name, body = {}, headers = {}) {
      const answer = await ask(name, body, headers);
      return { status: answer.statusCode, body: JSON.parse(await text(answer)) as Record<string, unknown> };
    },
    async open(name) {
      const answer = await ask(name, {}, {});
      // Its connection is closed, which is no proper end.
      answer.on("error", () => {});
      const ended = new Promise((resolve) => answer.once("close", resolve));
      await once(answer, "data");
      answer.resume();
      return { ended };
    },
    async interrupted() {
      child.kill("SIGINT");
      await closed;
      return child.exitCode;
    },
  };
}
