// A cache whose hit rate falls and recovers, and the webhook that hears of it. `npm start`
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { AlertManager, XCache } from "xcache";

const key = randomBytes(24);
const received = new EventEmitter();

// The receiver, usually a service of its own: believes only what is signed.
function isSigned({ headers }, body) {
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  const expected = Buffer.from(`v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  const arrived = Buffer.from(String(headers["webhook-signature"]));
  const age = Math.abs(Date.now() / 1000 - Number(headers["webhook-timestamp"]));
  return age < 300 && arrived.length === expected.length && timingSafeEqual(arrived, expected);
}
const receiver = createServer(async (request, response) => {
  const body = await text(request);
  if (!isSigned(request, body)) return response.writeHead(401).end();
  response.writeHead(204).end();
  const { type, data } = JSON.parse(body);
  console.log(`webhook  ${type.padEnd(15)} ${data.summary}`);
  received.emit(data.status);
});
receiver.listen(0, "127.0.0.1");
await once(receiver, "listening");
const webhookUrl = `http://127.0.0.1:${receiver.address().port}/alerts`;

const cache = new XCache({ kvUrl: "memory://" });
// A look every tenth of a second, so that the story is short; 30 seconds is the default.
const alerts = new AlertManager(cache, { interval: 0.1, webhookSecret: `whsec_${key.toString("base64")}` });
alerts.addAlert({
  name: "hit rate",
  metric: "hit_rate",
  comparison: "less_than",
  threshold: 0.5,
  webhookUrl,
});
alerts.start();

/** Reads until the webhook has received this status. */
async function readUntil(status, read) {
  let isReceived = false;
  received.once(status, () => {
    isReceived = true;
  });
  while (!isReceived) {
    await read();
    await wait(5);
  }
}

await cache.set("known", 1);
console.log("traffic  asks for what nobody stored");
await readUntil("firing", () => cache.get("unknown"));
console.log("traffic  asks for what is there");
await readUntil("resolved", () => cache.get("known"));

const forged = await fetch(webhookUrl, { method: "POST", body: '{"type":"alert.firing"}' });
console.log(`forged   answered with ${forged.status}`);
await alerts.stop();
await cache.disconnect();
receiver.close();
