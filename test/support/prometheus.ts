// Starts a real Prometheus for a test, and runs promtool.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { binaryOf } from "./machine.ts";
import { type ServerProcess, startOnFreePort } from "./server-process.ts";

export interface PrometheusServer extends ServerProcess {
  /** The labels and values of an instant query. */
  query(expr: string): Promise<{ metric: Record<string, string>; value: number }[]>;
}

/** Starts a server that scrapes one loopback port every 100 ms, and waits until it is ready. */
export async function startPrometheus(scrapedPort: number): Promise<PrometheusServer> {
  const server = await startOnFreePort("prometheus", ({ port, folder }) => {
    const config = join(folder, "prometheus.json");
    writeFileSync(config, JSON.stringify(configuration(scrapedPort)));
    return {
      binary: binaryOf("prometheus"),
      args: [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      isReady: async () => (await fetch(`http://127.0.0.1:${port}/-/ready`)).ok,
    };
  });
  return Object.assign(server, { query: (expr: string) => query(server.port, expr) });
}

/** JSON, which YAML reads as well. */
const configuration = (port: number) => ({
  global: { scrape_interval: "100ms", scrape_timeout: "100ms" },
  scrape_configs: [{ job_name: "app", static_configs: [{ targets: [`127.0.0.1:${port}`] }] }],
});

interface QueryAnswer {
  readonly data: {
    readonly result: readonly { metric: Record<string, string>; value: readonly [number, string] }[];
  };
}

async function query(port: number, expr: string): ReturnType<PrometheusServer["query"]> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`);
  const { data } = (await answer.json()) as QueryAnswer;
  return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
}

/** What promtool says, and how it ends. */
export async function promtool(
  args: readonly string[],
  input = "",
): Promise<{ status: number | null; output: string }> {
  const child = spawn(binaryOf("promtool"), args, { stdio: "pipe" });
  child.stdin.end(input);
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, output: `${out}${err}` };
}
