// Imports everything that the package exports. Prints as JSON, for each entry point, "loads" or the code of the error.
import { createRequire } from "node:module";

const { exports } = createRequire(import.meta.url)("xcache/package.json");
const outcomes = {};
for (const path of Object.keys(exports).filter((name) => name !== "./package.json")) {
  const name = path.replace(".", "xcache");
  outcomes[name] = await import(name).then(
    () => "loads",
    (error) => error.code ?? String(error),
  );
}
console.log(JSON.stringify(outcomes));
