// xcache ui: serves the dashboard on a loopback address and opens it in the browser.
import { spawn } from "node:child_process";
import { fieldNames, wireName } from "../../config/schema.ts";
import { serveLocally } from "../../dashboard/local.ts";
import { settingText } from "../../dashboard/settings.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { runChecks } from "../doctor/checks.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";

const PRIVATE =
  "memory:// is private to each process, so this one is empty: mount dashboard() in the application to see its cache";

interface Options {
  readonly port?: number;
  readonly allowWrites?: boolean;
  readonly showValues?: boolean;
  /** False after --no-open. */
  readonly open?: boolean;
  /** Seconds. */
  readonly idle?: number;
}

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out, interrupt, stop } = context;
  const { port = 0, allowWrites = false, showValues = false, open = true, idle } = options as Options;
  const work = async (session: Session): Promise<ExitCode> => {
    const quiet = new Idle(session, idle);
    const note = session.store.backend.name === "memory" ? PRIVATE : undefined;
    const served = await serveLocally({
      cache: session.cache,
      port,
      values: showValues,
      writes: allowWrites,
      onRequest: (count) => quiet.changed(count),
      settings: settingsOf(session),
      ...(note !== undefined && { note }),
      doctor: async () => (await runChecks(session)).findings,
    }).catch((error: NodeJS.ErrnoException) => {
      throw new CommandError(
        error.code === "EADDRINUSE"
          ? `port ${port} is taken`
          : `cannot listen on 127.0.0.1: ${error.message}`,
        "Choose another --port, or omit it for any free one.",
        EXIT.failed,
      );
    });
    try {
      if (out.json)
        await out.jsonLine({
          url: served.url,
          address: session.address,
          writes: allowWrites,
          values: showValues,
        });
      else await out.line(served.url);
      out.note(
        `${allowWrites ? "writes allowed" : "read-only"}; the address contains a secret; press Ctrl-C to stop`,
      );
      if (note !== undefined) out.note(note);
      await out.flush();
      if (open && out.isTerminal) openBrowser(served.url);
      await quiet.until(stop);
    } finally {
      await served.close();
    }
    return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
  };
  return withSession(context, work, { reportsProgress: true });
}

/** Ends the command when no page has been open for a while. */
class Idle {
  readonly #session: Session;
  readonly #seconds: number | undefined;
  #end: () => void = () => {};
  #timer: { cancel(): void } | undefined;
  #open = 0;

  constructor(session: Session, seconds: number | undefined) {
    this.#session = session;
    this.#seconds = seconds;
  }

  changed(open: number): void {
    this.#open = open;
    this.#timer?.cancel();
    if (open === 0) this.#arm();
  }

  #arm(): void {
    if (this.#seconds === undefined) return;
    const timer = this.#session.clock.after(this.#seconds * 1_000, () => this.#end());
    timer.hold?.(true);
    this.#timer = timer;
  }

  async until(stop: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#end = resolve;
      if (stop.aborted) resolve();
      stop.addEventListener("abort", () => resolve(), { once: true });
      if (this.#open === 0) this.#arm();
    });
    this.#timer?.cancel();
  }
}

const settingsOf = ({ settings }: Session) =>
  fieldNames().map((field) => ({
    name: wireName(field),
    value: settingText(field, settings.config[field]),
    origin: settings.sources[field],
  }));

function openBrowser(url: string): void {
  const [program, ...args] =
    process.platform === "darwin"
      ? ["open", url]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", url]
        : ["xdg-open", url];
  // Where there is none, the address is on the screen.
  const child = spawn(program as string, args, { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}
