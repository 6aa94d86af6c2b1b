// Keys: what is in the store, filtered while it is scanned, and one entry in detail.
import { useSignal } from "@preact/signals";
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { call, download, lines } from "./api.mjs";
import {
  bytes,
  count,
  duration,
  getCommand,
  percent,
  searchFor,
  searchOfPrefix,
  shown,
  shownLines,
} from "./format.mjs";
import { Bar, Card, Empty, Head, Pill } from "./parts.mjs";
import { overview, route, slowNow, storeNow } from "./state.mjs";

const TYPES = [
  "string",
  "number",
  "boolean",
  "null",
  "object",
  "array",
  "map",
  "set",
  "date",
  "bigint",
  "uint8array",
];
/** With as many, the next ones replace them. A scan adds no more than a page of the store's to them. */
const MOST_ROWS = 2_000;
const NOTHING = { rows: [], scanned: 0, busy: false, cursor: undefined, failed: undefined, exact: undefined };

/** What is found, and when by the store's clock. */
function withLine(held, line, before, never) {
  const seen = (entry) => ({ ...entry, seenAt: storeNow.peek() });
  const entries = (line.entries ?? []).filter(({ ttl }) => !never || ttl === null);
  return {
    rows: entries.length === 0 ? held.rows : [...held.rows, ...entries.map(seen)],
    scanned: before + (line.scanned ?? held.scanned - before),
    exact: line.exact ? seen(line.exact) : held.exact,
    cursor: line.done === true ? undefined : (line.cursor ?? held.cursor),
    failed: line.failed,
    busy: line.done === undefined && line.failed === undefined,
  };
}

const isHit = ({ key, tags }, changes) =>
  changes.some((change) => change.key === key || tags.includes(change.tag));

export function Keys() {
  const text = useSignal(route.value.about);
  /** As typed so far: an input without it would lose that whenever the page is drawn. */
  const tag = useSignal("");
  const filter = useSignal({ tag: "", type: "", state: "", never: false, similar: false });
  const found = useSignal(NOTHING);
  const selected = useSignal(undefined);
  const running = useRef(undefined);

  const scan = async (cursor) => {
    running.current?.abort();
    const own = new AbortController();
    running.current = own;
    const held = found.peek().rows;
    const rows = cursor === undefined || held.length >= MOST_ROWS ? [] : held;
    const before = cursor === undefined ? 0 : found.peek().scanned;
    const { similar, never, ...filters } = filter.peek();
    const wanted = text.peek();
    const body = { ...filters, cursor, ...(similar ? { similar: wanted } : searchFor(wanted)) };
    found.value = { ...NOTHING, rows, scanned: before, cursor, busy: true };
    try {
      for await (const line of lines("keys", body, own.signal)) {
        // Lines of a scan that was replaced meanwhile.
        if (own.signal.aborted) return;
        found.value = withLine(found.peek(), line, before, never);
      }
      if (found.peek().busy) throw new Error("the connection ended before the scan did");
    } catch (error) {
      // What was found stays, and the scan can be continued.
      if (!own.signal.aborted) found.value = { ...found.peek(), busy: false, failed: error.message };
    }
  };
  const stop = () => {
    running.current?.abort();
    found.value = { ...found.peek(), busy: false };
  };
  const set = (change) => {
    filter.value = { ...filter.value, ...change };
    void scan();
  };
  // Before anything can be typed: not after the next frame, which may come late.
  useLayoutEffect(() => {
    text.value = route.value.about;
    void scan();
    return () => running.current?.abort();
  }, [route.value.about]);

  // What was deleted or invalidated from here, in whichever tab.
  const changed = useRef(lastChange());
  const latest = lastChange();
  useEffect(() => {
    const changes = overview.peek().changes.filter(({ id }) => id > changed.current);
    changed.current = latest;
    const { rows, exact } = found.peek();
    if (changes.length === 0) return;
    found.value = {
      ...found.peek(),
      rows: rows.filter((entry) => !isHit(entry, changes)),
      exact: exact && !isHit(exact, changes) ? exact : undefined,
    };
  }, [latest]);

  if (!overview.value.listable) return html`<${Unlistable} selected=${selected} />`;
  const { rows, scanned, busy, cursor, failed, exact } = found.value;
  const { sample, totals } = overview.value;
  const total = Math.max(totals.totalKeys, scanned);
  const all = exact === undefined || rows.some(({ key }) => key === exact.key) ? rows : [exact, ...rows];
  return html`
    <${Head} title="Keys" note="What is in the store now. Looking is not counted in the figures." />
    <${Card} kind="keys">
      <nav class="tree" aria-label="Beginnings of keys">
        <h2>Beginnings, sampled</h2>
        ${(sample?.prefixes ?? []).map(
          ([prefix, times]) =>
            html`<button class=${searchOfPrefix(prefix) === text.value ? "on" : ""} onClick=${() => {
              text.value = searchOfPrefix(prefix);
              void scan();
            }}>${shown(prefix, 30)}<span>${percent(times / Math.max(1, sample.sampled), 0)}</span></button>`,
        )}
        <h2>State</h2>
        ${["", "fresh", "stale"].map((state) => html`<button class=${filter.value.state === state ? "on" : ""} onClick=${() => set({ state })}>${state || "all"}</button>`)}
        <button class=${filter.value.never ? "on" : ""} onClick=${() => set({ never: !filter.value.never })}>no ttl</button>
      </nav>
      <div>
        <form class="filters" onSubmit=${(event) => {
          event.preventDefault();
          void scan();
        }}>
          <input class="field mono" type="search" aria-label="Beginning of the keys, a glob, or an exact key" placeholder="user: or *:avatar" value=${text.value} onInput=${(
            event,
          ) => {
            text.value = event.target.value;
          }} />
          <input class="field mono short" aria-label="Tag" placeholder="tag" value=${tag.value} onInput=${(
            event,
          ) => {
            tag.value = event.target.value;
          }} onChange=${() => set({ tag: tag.value })} />
          <select class="field" aria-label="Type" value=${filter.value.type} onChange=${(event) => set({ type: event.target.value })}>
            <option value="">any type</option>${TYPES.map((type) => html`<option>${type}</option>`)}
          </select>
          <label class="check"><input type="checkbox" checked=${filter.value.similar} onChange=${(event) => set({ similar: event.target.checked })} />similar</label>
          <button class="btn p">Search</button>
        </form>
        <div class="wrap tall" tabindex="0" role="region" aria-label="Keys"><table>
          <thead><tr><th scope="col">Key</th><th scope="col">Expires in</th><th scope="col">Tags</th><th scope="col">Type</th><th scope="col" class="num">Size</th></tr></thead>
          <tbody>${all.map((entry) => html`<${Row} key=${entry.key} entry=${entry} selected=${selected} />`)}</tbody>
        </table></div>
        ${all.length === 0 && !busy && html`<${Empty}>${failed === undefined ? "No entries match." : shown(failed)}<//>`}
        <div class="scanbar" role="status">
          <${Bar} share=${cursor === undefined && !busy ? 1 : scanned / Math.max(1, total)} tone="blue" />
          <span>${count(all.length)} shown, ${count(scanned)} of ${totals.approximate ? "about " : ""}${count(total)} looked at${failed !== undefined && all.length > 0 ? html`; ${shown(failed)}` : ""}</span>
          ${busy && html`<button class="btn" onClick=${stop}>Stop</button>`}
          ${!busy && cursor !== undefined && html`<button class="btn" onClick=${() => scan(cursor)}>Show more</button>`}
        </div>
      </div>
      <${Inspector} selected=${selected} />
    <//>`;
}

const lastChange = () => overview.value.changes.at(-1)?.id ?? 0;

/** Of a ttl in seconds, some milliseconds later. */
const left = (ttl, sinceMs) => (ttl * 1_000 > sinceMs ? duration(ttl - sinceMs / 1_000) : "expired");

const Row = ({ entry, selected }) => html`<tr class=${selected.value === entry.key ? "sel" : ""}>
  <td class="key"><button class="plain" onClick=${() => {
    selected.value = entry.key;
  }}>${shown(entry.key)}</button></td>
  <td>${entry.state === "stale" ? html`<${Pill} tone="w">stale<//>` : entry.ttl === null ? html`<span class="warn">never</span>` : left(entry.ttl, Math.max(0, slowNow.value - entry.seenAt))}</td>
  <td>${entry.tags.slice(0, 4).map((tag) => html`<span class="tag">${shown(tag, 40)}</span>`)}</td>
  <td><${Pill}>${entry.type === undefined ? "not read" : shown(entry.type, 20)}<//></td>
  <td class="num">${bytes(entry.bytes)}</td>
</tr>`;

function Inspector({ selected }) {
  const entry = useSignal(undefined);
  const readAt = useSignal(0);
  const message = useSignal("");
  const key = selected.value;
  const failed = (error) => {
    message.value = error.message;
  };
  const look = (more, signal) => {
    isLong.current = more;
    return call("entry", { key, more }, signal).then(
      (read) => {
        if (selected.peek() !== key) return;
        entry.value = read;
        readAt.value = storeNow.peek();
      },
      (error) => {
        if (!signal?.aborted && selected.peek() === key) failed(error);
      },
    );
  };
  const isLong = useRef(false);
  useLayoutEffect(() => {
    message.value = "";
    entry.value = undefined;
    isLong.current = false;
  }, [key]);
  useEffect(() => {
    if (key === undefined) return undefined;
    const own = new AbortController();
    void look(isLong.current, own.signal);
    return () => own.abort();
  }, [key, lastChange()]);
  const { allowed, prefix } = overview.value;
  if (key === undefined)
    return html`<aside class="insp" aria-label="Entry"><${Empty}>Choose a key to see what is known about it.<//></aside>`;
  const read = entry.value;
  const sinceMs = Math.max(0, storeNow.value - readAt.value);
  const command = getCommand(key, prefix);
  const copy = (text) =>
    navigator.clipboard.writeText(text).then(
      () => (message.value = "Copied."),
      () => (message.value = "Copying is not allowed here."),
    );
  const remove = async () => {
    try {
      await call("delete", { key });
      message.value = "Deleted.";
      entry.value = { missing: true };
    } catch (error) {
      message.value = error.message;
    }
  };
  return html`<aside class="insp" aria-label="Entry">
    <div class="ih"><div class="key big">${shown(key)}</div>
      ${read?.missing && html`<${Pill} tone="w">no longer there<//>`}
      ${
        read &&
        !read.missing &&
        html`
        <div><${Pill} tone=${read.state === "fresh" ? "ok" : "w"}>${read.state}<//> ${read.tags.map((tag) => html`<span class="tag">${shown(tag, 60)}</span>`)}</div>
        <dl class="meta">
          ${[
            ["Expires in", read.ttl === null ? "never" : left(read.ttl, sinceMs)],
            ["Age", read.age === undefined ? "unknown" : duration(read.age + sinceMs / 1_000)],
            ["Size", bytes(read.bytes)],
            ["Type", read.type ?? "hidden"],
            ["Stale for", read.staleFor ? duration(read.staleFor) : "0 s"],
          ].map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
        </dl>`
      }
    </div>
    ${read?.value && !read.value.hidden && html`<pre class="json" tabindex="0" aria-label="Value">${shownLines(read.value.text)}</pre>`}
    ${read?.value?.cut && html`<${Rest} value=${read.value} more=${() => look(true)} whole=${() => download("download", { key }).catch(failed)} />`}
    ${read && !read.missing && !read.value && html`<p class="note i">Values are hidden. They can be shown with <code>${"values: true"}</code> or <code>--show-values</code>.</p>`}
    <p role="status" class="pad">${message.value}</p>
    <div class="acts"><button class="btn" onClick=${() => copy(key)}>Copy key</button><button class="btn" onClick=${() => copy(command)}>Copy CLI</button>
      <button class="btn dl" disabled=${!allowed.writes || read?.missing} title=${allowed.writes ? "" : "Read-only"} onClick=${remove}>Delete</button></div>
  </aside>`;
}

/** Of a value that is not shown whole: how much is, and how to get at the rest. */
const Rest = ({ value: { hidden, read, of, members }, more, whole }) => html`<p class="note i">
  ${hidden ? `Not shown: ${hidden}.` : `The beginning: ${bytes(read)} of ${bytes(of)} were read${members === undefined ? "" : `; ${count(members)} members`}.`}
  ${!hidden && read <= 65_536 && html` <button class="plain" onClick=${more}>Show more (up to 1 MiB)</button>`}
  ${" "}<button class="plain" onClick=${whole}>Download the whole value (${bytes(of)})</button>
</p>`;

function Unlistable({ selected }) {
  const text = useSignal("");
  return html`<${Head} title="Keys" note=${`The ${overview.value.backend} store cannot list its keys; an exact key can be looked up.`} />
    <${Card}><form class="filters" onSubmit=${(event) => {
      event.preventDefault();
      selected.value = text.value || undefined;
    }}><input class="field mono" aria-label="Exact key" value=${text.value} onInput=${(event) => {
      text.value = event.target.value;
    }} /><button class="btn p">Look up</button></form><${Inspector} selected=${selected} /><//>`;
}
