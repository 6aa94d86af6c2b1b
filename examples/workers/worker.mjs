// One worker of the pool: asks for every report, and tells how many of them it made itself.
import { setTimeout as wait } from "node:timers/promises";
import { cached, XCache } from "xcache";

const [, , kvUrl, reports] = process.argv;
// A worker would rather wait for a busy disk than compute a report twice.
const cache = new XCache({ kvUrl, connectTimeout: 30, operationTimeout: 30 });
await cache.connect();

let made = 0;
async function makeReport(number) {
  made++;
  await wait(30); // a long computation
  return { number, total: number * 1_000 };
}
const report = cached(makeReport, {
  cache,
  ttl: 3_600,
  tags: (number) => [`quarter:${Math.ceil(number / 3)}`],
});

for (let number = 1; number <= Number(reports); number++) await report(number);
await cache.disconnect();
process.send(made);
process.disconnect();
