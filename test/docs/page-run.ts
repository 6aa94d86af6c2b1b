// Runs the programs of one page in a process of their own, against real servers where they name some.
import { fork } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codeBlocksOf } from "../support/markdown.ts";
import { startMemcached } from "../support/memcached.ts";
import type { PostgresAddress } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import type { ServerProcess } from "../support/server-process.ts";
import {
  placeOf,
  promisedOutput,
  SNIPPET_FOLDER,
  type Snippet,
  snippetsOf,
  toJavaScript,
} from "./snippet.ts";

const DEADLINE_MS = 50_000;
const here = (file: string): string => join(import.meta.dirname, file);

type News = { readonly begins: number } | { readonly ended: number; readonly output: string };

/** Two at a time: what they wait for has deadlines of its own, and machines have few cores. */
const lanes = [Promise.resolve(), Promise.resolve()];
let taken = 0;

/** Resolves to what went wrong, as `page:line message`; nothing when all of it ran to its end. */
export function problemsOf(page: string, markdown: string, database?: PostgresAddress): Promise<string[]> {
  const lane = taken++ % lanes.length;
  const problems = lanes[lane]!.then(() => runPage(page, markdown, database));
  lanes[lane] = problems.then(
    () => {},
    () => {},
  );
  return problems;
}

async function runPage(page: string, markdown: string, database?: PostgresAddress): Promise<string[]> {
  const snippets = snippetsOf(page, markdown);
  if (snippets.length === 0) return [];
  const folder = join(SNIPPET_FOLDER, page.replace(/\.md$/, ""));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { name, text } of filesOf(markdown)) writeFileSync(join(folder, name), text);
  const programs = snippets.map((snippet, index) => {
    const program = join(folder, `${index}.mjs`);
    writeFileSync(program, toJavaScript(snippet));
    return program;
  });
  const { ports, stop } = await startServers(markdown);
  try {
    return await play(snippets, programs, folder, {
      ...environment(database),
      DOCS_SERVERS: JSON.stringify(ports),
    });
  } finally {
    await stop();
  }
}

/** One of its own for every page that names it, under the port that everybody knows it by. */
async function startServers(markdown: string) {
  const started: ServerProcess[] = [];
  const ports: Record<string, number> = {};
  const add = async (port: number, starting: Promise<ServerProcess>): Promise<void> => {
    const server = await starting;
    started.push(server);
    ports[port] = server.port;
  };
  if (/redis|valkey|fromEnv|fromYaml|new XCache\(\)/.test(markdown)) await add(6379, startRedis());
  if (/memcached:/.test(markdown)) await add(11211, startMemcached());
  const stop = async (): Promise<void> => {
    for (const server of started) await server.stop();
  };
  return { ports, stop };
}

function environment(database: PostgresAddress | undefined): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...(database && {
      PGHOST: database.host,
      PGPORT: String(database.port),
      PGUSER: database.user,
      PGDATABASE: database.database,
    }),
    XCACHE_KV_URL: "redis://localhost:6379/0",
    ALERT_WEBHOOK_SECRET: `whsec_${Buffer.from("a secret of the docs, 24").toString("base64")}`,
    SMTP_PASSWORD: "a password of the docs",
  };
}

function play(
  snippets: readonly Snippet[],
  programs: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const problems: string[] = [];
  let current = snippets[0]!;
  let said = "";
  const child = fork(here("play.mjs"), programs, {
    cwd,
    env,
    execArgv: ["--import", here("stage.mjs")],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const timer = setTimeout(() => {
    said += `did not end within ${DEADLINE_MS / 1000} s`;
    child.kill("SIGKILL");
  }, DEADLINE_MS);
  child.stderr?.on("data", (text: Buffer) => {
    said += text.toString();
  });
  child.on("message", (news: News) => {
    if ("begins" in news) {
      current = snippets[news.begins]!;
      return;
    }
    const promised = promisedOutput(current);
    const printed = news.output.split("\n").slice(0, -1);
    if (promised !== undefined && promised.join("\n") !== printed.join("\n")) {
      problems.push(`${placeOf(current)} prints ${JSON.stringify(printed)}`);
    }
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve(code === 0 ? problems : [...problems, `${placeOf(current)} ${said.trim()}`]);
    });
  });
}

interface PageFile {
  readonly name: string;
  readonly text: string;
}

/**
 * Blocks that are files: those with a name in brackets behind their language, such as `yaml [cache.yaml]`, and the first
 * configuration without a name, which is `cache.yaml`.
 */
function filesOf(markdown: string): PageFile[] {
  const blocks = codeBlocksOf(markdown);
  const unnamed = blocks.find(({ language, flags }) => language === "yaml" && flags.length === 0);
  return [
    ...(unnamed === undefined ? [] : [{ name: "cache.yaml", text: unnamed.code }]),
    ...blocks.flatMap(({ flags, code }) => {
      const names = flags.flatMap((flag) => /^\[([\w.-]+)\]$/.exec(flag)?.[1] ?? []);
      return names.map((name) => ({ name, text: code }));
    }),
  ];
}
