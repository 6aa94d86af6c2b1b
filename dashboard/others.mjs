// Functions, health, alerts and settings.
import { useSignal } from "@preact/signals";
import { html } from "htm/preact";
import { useEffect } from "preact/hooks";
import { call } from "./api.mjs";
import { clock, count, duration, moment, ms, percent, searchOfPrefix, shown } from "./format.mjs";
import { breakerBands, Ranges } from "./overview.mjs";
import { breakerTone, Card, Empty, Head, Pill, Share, Spark, Table } from "./parts.mjs";
import { linkTo, overview, route } from "./state.mjs";

export function Functions() {
  const { functions, seconds } = overview.value;
  const minutes = Math.min(seconds, 86_400) / 60;
  return html`<${Head} title="Functions" note="Everything wrapped by cached(), over all processes; a day at most"><${Ranges} /><//>
    <${Card}>${
      functions.length === 0
        ? html`<${Empty}>No calls of cached functions in this period.<//>`
        : html`<${Table} label="Functions" heads=${["Function", "Hit rate", ">Calls/min", ">Loads/min", ">Coalesced", ">Load p95", ">Stale served", ">Failed", "ttl", "Hits over time"]}>
          ${functions.map(
            (each) => html`<tr class=${route.value.about === each.name ? "sel" : ""}>
            <td class="mono"><a href=${linkTo("keys", searchOfPrefix(`${each.name}(`))}>${shown(each.name, 60)}</a></td><td><${Share} share=${each.hitRate} /></td>
            <td class="num">${count(each.calls / minutes)}</td><td class="num">${count(each.loads / minutes)}</td><td class="num">${count(each.coalesced)}</td>
            <td class="num">${ms(each.p95LoadTime)} ms</td><td class="num">${percent(each.staleServed / Math.max(1, each.calls))}</td><td class="num">${count(each.errors)}</td>
            <td>${each.ttlSeconds === 0 ? "-" : duration(each.ttlSeconds)}</td>
            <td class="sp"><${Spark} values=${each.points.map(([, calls, hits]) => hits / Math.max(1, calls))} tone=${each.hitRate < 0.5 ? "red" : "acc"} /></td>
          </tr>`,
          )}
        <//>`
    }<//>
    <p class="note i">Coalesced: calls that joined a load already under way (single flight). Stale served: answered at once with an expired value while a load ran behind.</p>`;
}

export function Health() {
  const { health, processes, now: at, seconds } = overview.value;
  const from = at - seconds * 1_000;
  const events = processes.flatMap((each) =>
    each.states.map((change) => ({ ...change, name: `${each.host} · ${each.pid}` })),
  );
  const tone = { healthy: "ok", degraded: "w", unhealthy: "bad" }[health.status];
  return html`<${Head} title="Health" note="The store as this process sees it, and the breaker of every process"><${Ranges} /><//>
    <${Card} kind="banner"><${Pill} tone=${tone}>${health.status}<//><p>${
      health.checks
        .filter(({ ok }) => !ok)
        .map(({ name, detail }) => `${name}: ${detail}`)
        .join("; ") || "All checks pass."
    }</p><//>
    <div class="g21">
      <${Card} title="Breaker" note=${`${clock(from)} to ${clock(at)}`}>
        <div class="cb">${processes.map(
          (each) => html`<div class="lane"><span>${shown(each.host, 30)} · ${each.pid}</span>
          <div class="track" role="img" aria-label=${`${each.circuitBreaker} now`}>${breakerBands(
            [each],
            at,
          ).map(({ from: start, to, state }) => {
            const left = Math.max(0, (start - from) / (at - from));
            return html`<i class=${state === "open" ? "b-red" : "b-amber"} style=${{ left: `${left * 100}%`, width: `${Math.max(0.5, ((to - from) / (at - from) - left) * 100)}%` }} />`;
          })}</div></div>`,
        )}</div>
        ${
          events.length === 0
            ? html`<${Empty}>No change of state was reported.<//>`
            : html`<${Table} label="Changes of state" heads=${["Time", "Process", "What", "State"]}>
              ${events
                .toSorted((one, other) => (one.at < other.at ? 1 : -1))
                .slice(0, 200)
                .map(
                  (event) =>
                    html`<tr><td class="mono">${moment(event.at)}</td><td class="mono">${shown(event.name)}</td><td>${event.what.replace("_", " ")}</td><td><${Pill} tone=${event.what === "connection" ? (event.state === "connected" ? "ok" : "w") : breakerTone(event.state)}>${shown(event.state)}<//></td></tr>`,
                )}
            <//>`
        }
      <//>
      <${Card} title="Checks"><ul class="checks">${health.checks.map(({ name, ok, detail }) => html`<li><span class=${`dot ${ok ? "" : "r"}`} /><b class="mono">${name}</b><p>${ok ? "ok: " : "failed: "}${shown(detail)}</p></li>`)}</ul><//>
    </div>`;
}

export function Alerts() {
  const { processes } = overview.value;
  const settings = useSignal(undefined);
  useEffect(() => {
    call("settings").then(
      (read) => {
        settings.value = read;
      },
      () => {},
    );
  }, []);
  const rows = processes.flatMap((each) =>
    each.alerts.map((alert) => ({ ...alert, process: `${each.host} · ${each.pid}` })),
  );
  const order = { firing: 0, pending: 1, inactive: 2 };
  const known = new Set(rows.map(({ name }) => name));
  const missing = (settings.value?.patterns ?? []).filter(({ name }) => !known.has(name));
  return html`<${Head} title="Alerts" note="As each process evaluates them" />
    <${Card}>${
      rows.length === 0
        ? html`<${Empty}>No process has alerts: see AlertManager.<//>`
        : html`<${Table} label="Alerts" heads=${["Alert", "Condition", "State", ">Value", "Since", "Process", "Notifies"]}>
          ${rows
            .toSorted((one, other) => order[one.status] - order[other.status])
            .map(
              (each) => html`<tr><td class="mono">${shown(each.name)}</td><td>${shown(each.condition)}</td>
            <td><${Pill} tone=${{ firing: "bad", pending: "w", inactive: "ok" }[each.status]}>${each.status === "inactive" ? "ok" : each.status}<//></td>
            <td class="num">${each.value === undefined ? "-" : Number(each.value.toPrecision(3))}</td><td class="mono">${each.since === undefined ? "" : moment(each.since)}</td><td class="mono">${shown(each.process)}</td><td class="dim">${each.destinations.join(", ")}</td></tr>`,
            )}
        <//>`
    }<//>
    ${
      missing.length > 0 &&
      html`<${Card} title="Ready-made alerts not in use" note="manager.patterns()"><${Table} label="Ready-made alerts" heads=${["Alert", "Condition"]}>
      ${missing.map((each) => html`<tr><td class="mono">${each.name}</td><td>${each.metric} ${each.comparison.replaceAll("_", " ")} ${each.threshold}${each.for ? ` for ${each.for} s` : ""}</td></tr>`)}
    <//><//>`
    }`;
}

export function Settings() {
  const data = useSignal(undefined);
  const doctor = useSignal(undefined);
  const failed = useSignal(undefined);
  useEffect(() => {
    call("settings").then(
      (read) => {
        data.value = read;
      },
      (error) => {
        failed.value = error.message;
      },
    );
    call("doctor").then(
      ({ findings }) => {
        doctor.value = findings;
      },
      () => {},
    );
  }, []);
  return html`<${Head} title="Settings" note="In force now, and where each comes from. They are changed in code or the environment, not here." />
    <${Card}>${
      data.value === undefined
        ? html`<${Empty}>${failed.value ?? "Reading …"}<//>`
        : html`<${Table} label="Settings" heads=${["Setting", "Value", "From"]}>
      ${data.value.settings.map(({ name, value, origin }) => html`<tr><td class="mono">${name}</td><td class="mono any">${shown(value)}</td><td><${Pill}>${origin}<//></td></tr>`)}
    <//>`
    }<//>
    ${doctor.value?.length > 0 && html`<${Card} title="Doctor"><ul class="checks">${doctor.value.map(({ name, state, detail, advice }) => html`<li><span class=${`dot ${state === "ok" ? "" : state === "warning" ? "a" : "r"}`} /><b class="mono">${name}</b><p>${shown(detail)} ${advice ?? ""}</p></li>`)}</ul><//>`}`;
}
