// Runs the programs of a page one after the other in one process, and tells what each has printed.
import { pathToFileURL } from "node:url";

/** @param {unknown} message */
const tell = (message) => new Promise((resolve) => process.send?.(message, resolve));

let output = "";
const keep = (/** @type {string | Uint8Array} */ chunk, /** @type {unknown[]} */ ...rest) => {
  output += Buffer.from(/** @type {string} */ (chunk)).toString();
  const done = rest.find((each) => typeof each === "function");
  if (typeof done === "function") done();
  return true;
};
process.stdout.write = keep;

for (const [index, program] of process.argv.slice(2).entries()) {
  output = "";
  await tell({ begins: index });
  await import(pathToFileURL(program).href);
  // What it left behind may still fail.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  await tell({ ended: index, output });
}
// Servers and timers that a program has started go on in earnest; here it is over.
process.exit(0);
