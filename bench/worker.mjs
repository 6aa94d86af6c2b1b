// One measurement in a process of its own: node worker.mjs <scenario> <library> <seed> prints one line of JSON.
const [scenarioName, libraryName, seed = "1"] = process.argv.slice(2);
if (libraryName === undefined) {
  console.error("usage: node worker.mjs <scenario> <library> [seed]");
  process.exit(2);
}
const { scenario } = await import(`./scenarios/${scenarioName}.mjs`);
const { open } = await import(`./libraries/${libraryName}.mjs`);
const figures = await scenario.measure(open, Number(seed));
console.log(JSON.stringify({ scenario: scenarioName, library: libraryName, seed: Number(seed), ...figures }));
// Some libraries leave timers or sockets behind.
process.exit(0);
