// Runs the main module of the installed program once per message, with the arguments, environment, folder and input given.
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [execPath = "", , program = ""] = process.argv;
let runs = 0;

/**
 * @param {"stdin" | "stdout" | "stderr"} name
 * @param {Readable | Writable} stream
 */
const replace = (name, stream) =>
  Object.defineProperty(process, name, { value: stream, configurable: true, enumerable: true });

/** @param {"stdout" | "stderr"} name */
function collect(name) {
  /** @type {Buffer[]} */
  const chunks = [];
  const write = (/** @type {Buffer} */ chunk, /** @type {string} */ _, /** @type {() => void} */ done) => {
    chunks.push(chunk);
    done();
  };
  replace(name, new Writable({ write }));
  return () => Buffer.concat(chunks).toString();
}

/** Whether something besides the channel to the test would keep a process of its own alive. */
const isHeld = () => process.getActiveResourcesInfo().length > 1;

/** @param {import("./shared-process.ts").Order} order */
async function run({ args, env, input, cwd }) {
  process.argv = [execPath, program, ...args];
  process.env = { ...env };
  process.chdir(cwd);
  process.exitCode = undefined;
  replace("stdin", Readable.from(input === "" ? [] : [Buffer.from(input)], { objectMode: false }));
  const [stdout, stderr] = [collect("stdout"), collect("stderr")];
  await import(`${pathToFileURL(program).href}?${runs++}`);
  while (isHeld()) await pause(1);
  process.send?.({ code: process.exitCode ?? 0, stdout: stdout(), stderr: stderr() });
}

// In place of Node, which would write to the terminal of the tests.
process.on("warning", ({ name, message }) =>
  process.stderr.write(`(node:${process.pid}) ${name}: ${message}\n`),
);
process.on("message", run);
