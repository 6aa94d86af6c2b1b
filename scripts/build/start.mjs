// `npm start`: compiles if necessary, then runs the story of examples/story. Its exit code is passed on.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { buildIfStale } from "./build.mjs";

const story = fileURLToPath(new URL("../../examples/story/story.mjs", import.meta.url));

process.exitCode =
  buildIfStale() ||
  (spawnSync(process.execPath, [story, ...process.argv.slice(2)], { stdio: "inherit" }).status ?? 1);
