// Tags: how many entries an invalidation would hit, before it is made.
import { useSignal } from "@preact/signals";
import { html } from "htm/preact";
import { useEffect } from "preact/hooks";
import { call } from "./api.mjs";
import { ago, bytes, count, invalidateCommand, percent, shown } from "./format.mjs";
import { Card, Empty, Head, Share, Table } from "./parts.mjs";
import { overview, route, storeNow } from "./state.mjs";

export function Tags() {
  const data = useSignal(undefined);
  const chosen = useSignal(route.value.about || undefined);
  const failed = useSignal(undefined);
  const read = async (exact) => {
    failed.value = undefined;
    try {
      data.value = await call("tags", { exact });
    } catch (error) {
      failed.value = error.message;
    }
  };
  // Again after a change, also one that was made in another tab.
  useEffect(() => {
    void read(false);
  }, [overview.value.changes.at(-1)?.id]);
  const sample = data.value?.sample;
  const head = html`<${Head} title="Tags" note="How many entries an invalidation would hit. It is one write, whatever the number." />`;
  if (failed.value !== undefined) return html`${head}<${Card}><${Empty}>${failed.value}<//><//>`;
  if (data.value === undefined) return html`${head}<${Card}><${Empty}>Looking at entries …<//><//>`;
  if (sample === undefined)
    return html`${head}<${Card}><${Empty}>The ${overview.value.backend} store cannot list entries, so tags cannot be counted.<//><//>`;
  const tag = sample.tags.find((each) => each.tag === chosen.value) ?? sample.tags[0];
  return html`${head}<div class="g21">
    <${Card} title="Tags seen" note=${sample.exact ? `all ${count(sample.total)} entries` : `${count(sample.sampled)} of about ${count(sample.total)} entries`}>
      ${
        sample.tags.length === 0
          ? html`<${Empty}>No entry carries a tag.<//>`
          : html`<${Table} label="Tags" heads=${["Tag", ">Entries", ">Bytes", "Share of bytes", ">Invalidations/h", ">Last"]}>
            ${sample.tags.map(
              (each) => html`<tr class=${each === tag ? "sel" : ""}>
              <td><button class="plain tag" onClick=${() => {
                chosen.value = each.tag;
              }}>${shown(each.tag, 60)}</button></td>
              <td class="num">${sample.exact ? "" : "≈ "}${count(each.entries)}</td><td class="num">${bytes(each.bytes)}</td>
              <td><${Share} share=${each.share} tone="blue" /></td>
              <td class="num">${each.invalidations > 60 ? html`<span class="warn">${count(each.invalidations)}</span>` : count(each.invalidations)}</td>
              <td class="num dim">${each.lastInvalidation === undefined ? "never" : ago(each.lastInvalidation, storeNow.value)}</td>
            </tr>`,
            )}
          <//>`
      }
      <div class="scanbar"><span>${sample.exact ? "Counted exactly." : SAMPLED[sample.ordered ? "ordered" : "shuffled"]}</span>
        ${!sample.exact && html`<button class="btn" onClick=${() => read(true)}>Count exactly</button>`}</div>
    <//>
    ${tag && html`<${Blast} key=${tag.tag} tag=${tag} data=${data.value} />`}
  </div>`;
}

const SAMPLED = {
  shuffled: "Tags keep no list of their keys, so the counts come from a sample.",
  ordered:
    "This store lists entries in order, and these are its first: other tags may be missing, and counts may be far off.",
};

const TONES = ["blue", "vio", "amber", "acc", "red", "blue"];

function Blast({ tag, data }) {
  const typed = useSignal("");
  const message = useSignal("");
  const { sample } = data;
  const { allowed, prefix } = overview.value;
  const share = tag.entries / Math.max(1, sample.total);
  const invalidate = async () => {
    try {
      await call("invalidate", { tag: tag.tag });
      message.value = "Invalidated in every process.";
      typed.value = "";
    } catch (error) {
      message.value = error.message;
    }
  };
  const command = invalidateCommand(tag.tag, prefix);
  return html`<${Card} title="Blast radius" note=${html`<span class="tag">${shown(tag.tag, 60)}</span>`}>
    <div class="blast">
      <div class="duo">
        <div><div class="huge">${sample.exact ? "" : "≈ "}${count(tag.entries)}</div><span class="dim">entries${tag.margin > 0 ? ` ± ${count(tag.margin)}` : ""}, ${percent(share, 0)} of the cache</span></div>
        <div><div class="huge">${bytes(tag.bytes)}</div><span class="dim">${percent(tag.share, 0)} of the bytes</span></div>
      </div>
      <div class="share" aria-hidden="true">${tag.prefixes.map(([, entries], at) => html`<i class=${`b-${TONES[at]}`} style=${{ width: `${(entries / Math.max(1, tag.entries)) * 100}%` }} />`)}</div>
      <div class="legend">${tag.prefixes.map(([name, entries], at) => html`<span><i class=${`b-${TONES[at]}`} />${shown(name, 30)} <b>${count(entries)}</b></span>`)}</div>
      <p class="note">Each is loaded again once, when it is next asked for. ${data.p95LoadTime >= 0.001 ? `The slowest function takes ${(data.p95LoadTime * 1_000).toFixed(0)} ms (p95).` : ""}</p>
      <label class="lab">Type the tag to invalidate it in every process
        <input class="field mono" value=${typed.value} disabled=${!allowed.writes} onInput=${(event) => {
          typed.value = event.target.value;
        }} /></label>
      <p role="status">${message.value || (allowed.writes ? "" : "Read-only: nothing can be invalidated from here.")}</p>
      <div class="acts flat"><button class="btn d" disabled=${!allowed.writes || typed.value !== tag.tag} onClick=${invalidate}>Invalidate</button>
        <button class="btn" onClick=${() => navigator.clipboard.writeText(command)}>Copy CLI</button></div>
    </div>
  <//>`;
}
