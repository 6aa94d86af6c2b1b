// The codec compared with msgpackr in plain JavaScript, JSON and structuredClone; copies and frames.
// Build first; then: node bench/codec/run.mjs
import { createCodec } from "../../.cache/modules/codec/codec.js";
import { decodeHeader, decodeRecord, encodeRecord } from "../../.cache/modules/core/frame/frame.js";

// Its optional native part would compare C++ with JavaScript, and is not available on every machine.
process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED = "true";
const { Packr } = await import("msgpackr");

const BATCH_MS = 0.5;
const ROUNDS = 9;
const ROUND_MS = 40;

const user = {
  id: 184467,
  name: "Ada Lovelace",
  email: "ada@example.com",
  active: true,
  score: 97.25,
  roles: ["admin", "editor"],
  address: { city: "London", zip: "NW1 6XE" },
  createdAt: 1732000000000,
  note: null,
};
const page = {
  page: 3,
  total: 1280,
  items: Array.from({ length: 50 }, (_, i) => ({
    id: 100000 + i,
    title: `Item number ${i} of the list`,
    price: 12.34 + i,
    inStock: i % 3 === 0,
    tags: ["alpha", "beta"],
    vendor: { id: i % 7, name: `Vendor ${i % 7}` },
    description: `A short description of the thing ${i}`,
    rating: 4,
  })),
};
const flat = { id: 1, name: "Ada", email: "ada@example.com", age: 36, active: true, score: 1.5 };
const words =
  "id name email price createdAt total items userId status kind title zip city phone rating owner slug".split(
    " ",
  );
const shapes = Array.from({ length: 40 }, (_, shape) =>
  Object.fromEntries(
    Object.values(flat).map((value, i) => [words[(shape * 5 + i * (1 + (shape % 3))) % words.length], value]),
  ),
);

let sink;

/** Nanoseconds per call: short batches, the rounds of all rivals interleaved, the lower quartile of each. */
function compare(title, rivals) {
  const entries = Object.entries(rivals).map(([name, run]) => ({
    name,
    run,
    size: batchSize(run),
    samples: [],
  }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { run, size, samples } of entries) {
      const until = performance.now() + ROUND_MS;
      do samples.push((timed(run, size) * 1e6) / size);
      while (performance.now() < until);
    }
  }
  console.log(`\n${title}`);
  for (const { name, samples } of entries) {
    samples.sort((a, b) => a - b);
    console.log(`  ${name.padEnd(34)} ${samples[samples.length >> 2].toFixed(0).padStart(8)} ns`);
  }
}

function timed(run, times) {
  const start = performance.now();
  for (let i = 0; i < times; i++) sink = run();
  return performance.now() - start;
}

function batchSize(run) {
  timed(run, 3000);
  let size = 1;
  while (timed(run, size) < BATCH_MS) size *= 2;
  return size;
}

const codec = createCodec();
const maps = new Packr({ useRecords: false });
const records = new Packr({ structuredClone: true, moreTypes: true });

for (const [name, value] of [
  ["object of 200 B", user],
  ["object of 10 kB", page],
]) {
  const text = JSON.stringify(value);
  const payload = codec.encode(value);
  const asMaps = Buffer.from(maps.pack(value));
  const asRecords = Buffer.from(records.pack(value));
  console.log(
    `\n${name}: JSON ${text.length} B, xcache ${payload.bytes.length} B, ` +
      `msgpackr maps ${asMaps.length} B, records ${asRecords.length} B`,
  );
  compare(`encode, ${name}`, {
    xcache: () => codec.encode(value),
    "msgpackr maps": () => maps.pack(value),
    "msgpackr records, structuredClone": () => records.pack(value),
    "JSON.stringify + Buffer": () => Buffer.from(JSON.stringify(value)),
  });
  compare(`decode, ${name}`, {
    xcache: () => codec.decode(payload),
    "msgpackr maps": () => maps.unpack(asMaps),
    "msgpackr records, structuredClone": () => records.unpack(asRecords),
    "JSON.parse": () => JSON.parse(text),
  });
  const stored = codec.copy(value);
  compare(`copy, ${name}`, {
    copy: () => codec.copy(value),
    copyTrusted: () => codec.copyTrusted(stored),
    sizeOf: () => codec.sizeOf(stored),
    structuredClone: () => structuredClone(value),
  });
}

const storedShapes = shapes.map((shape) => codec.copy(shape));
const spread = (value) => ({ ...value });
let next = 0;
compare("copy, flat object of 6 properties, among 40 other shapes", {
  "copy, one shape": () => codec.copy(flat),
  "copyTrusted, one shape": () => codec.copyTrusted(flat),
  "copyTrusted, 40 shapes in turn": () => codec.copyTrusted(storedShapes[next++ % 40]),
  "{ ...value }, 40 shapes in turn": () => spread(storedShapes[next++ % 40]),
  structuredClone: () => structuredClone(flat),
});

const token = "12345678";
const entry = {
  kind: "entry",
  version: token,
  key: "user:1",
  created: 1732000000000,
  expires: 1732000300000,
  staleUntil: 1732000300000,
  namespaceStamps: [token],
  tags: [],
  payload: codec.encode(user),
};
const tagged = { ...entry, tags: ["users-list", "user:12345"].map((tag) => ({ tag, id: token })) };
const frame = encodeRecord(entry);
const taggedFrame = encodeRecord(tagged);
const own = entry.payload.bytes.length;
console.log(
  `\nframe: ${frame.length - own} B around the payload, ${taggedFrame.length - own} B with two tags`,
);
compare("frame of an entry", {
  encode: () => encodeRecord(entry),
  "encode, two tags": () => encodeRecord(tagged),
  decode: () => decodeRecord(frame, "user:1"),
  "decode, two tags": () => decodeRecord(taggedFrame, "user:1"),
  "decode header only": () => decodeHeader(frame, "user:1"),
});

const compressible = Object.fromEntries(
  ["brotli", "gzip", "zstd"].flatMap((algorithm) => {
    try {
      return [[algorithm, createCodec({ compression: { algorithm } })]];
    } catch {
      return [];
    }
  }),
);
compare(
  "encode with compression, object of 10 kB",
  Object.fromEntries(
    Object.entries(compressible).map(([name, packer]) => [
      `${name}, ${packer.encode(page).bytes.length} B`,
      () => packer.encode(page),
    ]),
  ),
);
compare(
  "decode with compression, object of 10 kB",
  Object.fromEntries(
    Object.entries(compressible).map(([name, packer]) => {
      const payload = packer.encode(page);
      return [name, () => packer.decode(payload)];
    }),
  ),
);
if (sink === undefined) console.log("nothing was measured");
