// Runs functions of a bundle that was made before, in a process of its own: one after another, as they are asked for.
const simulation = await import(/** @type {string} */ (process.argv[2]));
let last = Promise.resolve();

process.on("message", (/** @type {{ id: number, name: string, args: unknown[] }} */ { id, name, args }) => {
  last = last.then(async () => {
    try {
      process.send?.({ id, result: await simulation[name](...args) });
    } catch (error) {
      process.send?.({ id, error });
    }
  });
});
process.on("disconnect", () => process.exit());
