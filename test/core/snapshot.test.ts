import { describe, expect, it } from "vitest";
import { isPlain, snapshot } from "../../src/core/snapshot.ts";

interface Node {
  readonly id: number;
  links: unknown;
}

const partsOf = (whole: unknown): unknown[] =>
  Symbol.iterator in (whole as object)
    ? [...(whole as Iterable<unknown>)].flat()
    : Object.values(whole as object);

it.each([
  ["a list", (node: Node) => [node]],
  ["an object", (node: Node) => ({ node })],
  ["a Map", (node: Node) => new Map([["node", node]])],
  ["a Set", (node: Node) => new Set([node])],
])("a part that refers to its whole through %s refers to the copy of the whole", (_, linksOf) => {
  const node: Node = { id: 1, links: undefined };
  node.links = linksOf(node);
  const copy = snapshot(node);
  expect(copy).not.toBe(node);
  expect(copy.links).not.toBe(node.links);
  expect(partsOf(copy.links).at(-1)).toBe(copy);
});

it("what occurs twice is the same object in the copy", () => {
  const date = new Date(5);
  const [one, other] = snapshot([{ date }, { date }]) as [{ date: Date }, { date: Date }];
  expect(one.date).toBe(other.date);
  expect(one.date).not.toBe(date);
  expect(one.date).toEqual(date);
});

it("a graph in which everything refers to everything takes no longer than its size", () => {
  const shared = {};
  expect(snapshot([shared, shared]).every((each, _, [first]) => each === first)).toBe(true);
  const nodes: Node[] = Array.from({ length: 50 }, (_, id) => ({ id, links: undefined }));
  for (const node of nodes) node.links = nodes;
  const copies = snapshot(nodes);
  expect(copies.map(({ id, links }) => [id, links === copies])).toEqual(nodes.map(({ id }) => [id, true]));
});

describe("whether a value is plain", () => {
  const tree = (): object => {
    const parent = { children: [] as object[] };
    for (let id = 0; id < 30; id++) parent.children.push({ id, parent });
    return parent;
  };
  const loop: unknown[] = [];
  loop.push(loop);
  let shared: unknown = {};
  for (let level = 0; level < 100; level++) shared = [shared, shared];
  let deep: unknown = {};
  for (let level = 0; level < 100_000; level++) deep = [deep];

  it.each<[string, unknown, boolean]>([
    ["dates, bytes and lists in objects", { at: [new Date(0), Buffer.of(1), new Uint8Array(1), null] }, true],
    ["an instance of a class", [{ map: new Map() }], false],
    ["a function", { run: () => 1 }, false],
    ["children that refer to their parent", tree(), false],
    ["a list that contains itself", loop, false],
    ["an object that occurs in many places", shared, true],
    ["deeper than any codec goes", deep, false],
  ])("%s", (_, value, expected) => {
    expect(isPlain(value)).toBe(expected);
  });
});
