// One measurement in a separate process: node worker.mjs <scenario> <library> [seed] prints one line of JSON.
const [scenarioName, libraryName, seed = "1"] = process.argv.slice(2);
if (libraryName === undefined) {
  console.error("usage: node worker.mjs <scenario> <library> [seed]");
  process.exit(2);
}

function mustNotLoad(key) {
  throw new Error(`${key} was not in the cache`);
}

const { scenario } = await import(`./scenarios/${scenarioName}.mjs`);
const library = await import(`./libraries/${libraryName}.mjs`);
const open = (options) =>
  library.open({ ttl: 3_600, copies: false, tagged: false, load: mustNotLoad, ...options });
const figures = await scenario.measure(open, Number(seed));
console.log(JSON.stringify({ scenario: scenarioName, library: libraryName, seed: Number(seed), ...figures }));
// Some libraries leave timers or sockets behind.
process.exit(0);
