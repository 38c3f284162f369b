// What the wire says of units: the service behind get_extensions and its relatives, and the report of --print-extensions.
import { CommandError, errorMessage } from "./kernel/errors.ts";
import type { Kernel } from "./kernel/kernel.ts";
import type { UnitInfo as LoadedUnit } from "./loader/host.ts";
import type { Loader } from "./loader/loader.ts";
import type { Extensions, ReloadReport, UnitInfo } from "./services/extensions.ts";

const EMPTY_UNIT = {
  origin: "project" as const,
  state: "untrusted" as const,
  generation: 0,
  contributes: [],
  shadows: [],
  shadowedBy: [],
  files: [],
  timings: { resolve: 0, transpile: 0, evaluate: 0, setup: 0, swap: 0 },
  handlers: { calls: 0, p95Ms: 0 },
  errors: 0,
};

export interface UnitListing {
  loader: Loader;
  kernel: Kernel;
  /** Units that exist and may not be loaded. */
  untrusted: () => readonly { readonly id: string; readonly path: string }[];
}

export function createExtensions({ loader, kernel, untrusted }: UnitListing): Extensions {
  return {
    list: () => [
      ...loader.units().map((unit) => describe(unit, kernel)),
      ...untrusted().map(({ id, path }) => ({ ...EMPTY_UNIT, id, name: nameOf({ path }), path })),
    ],
    async reload(id) {
      const reports = await loader.reload(id === undefined ? undefined : findUnit(loader, id).id);
      return reports.map(
        ({ id: unit, outcome, error, timings }): ReloadReport => ({
          id: unit,
          outcome: outcome === "skipped" ? "unchanged" : outcome,
          ...(error === undefined ? {} : { error: kernel.redact(errorMessage(error)) }),
          ...(timings === undefined ? {} : { ms: timings.evaluate + timings.setup }),
        }),
      );
    },
    setEnabled: (id, enabled) => loader.setEnabled(findUnit(loader, id).id, enabled),
  };
}

/** Text of --print-extensions: when each step of the start was over, then every unit with what its loading took. */
export function startReport(timeline: readonly (readonly [step: string, ms: number])[], units: readonly LoadedUnit[]): string {
  const lines = timeline.map(([step, ms]) => `${step} after ${ms.toFixed(1)} ms`);
  for (const unit of units) {
    const { resolve, transpile, evaluate, setup, swap } = unit.timings;
    const spent = `resolve ${resolve.toFixed(1)}, transpile ${transpile.toFixed(1)}, evaluate ${evaluate.toFixed(1)}, setup ${setup.toFixed(1)}, swap ${swap.toFixed(1)} ms`;
    lines.push(`${unit.state.padEnd(11)} ${unit.origin.padEnd(8)} ${unit.id} generation ${unit.generation} (${spent})`);
    for (const key of unit.contributes) lines.push(`              ${key}`);
  }
  return `${lines.join("\n")}\n`;
}

function describe(unit: LoadedUnit, kernel: Kernel): UnitInfo {
  return {
    id: unit.id,
    name: nameOf(unit),
    origin: unit.origin,
    state: stateOf(unit),
    ...(unit.origin === "builtin" ? {} : { path: unit.path }),
    generation: unit.generation,
    ...(unit.draining === undefined ? {} : { draining: unit.draining }),
    contributes: [...unit.contributes],
    shadows: [...unit.shadows],
    shadowedBy: [...unit.shadowedBy],
    files: [...unit.files],
    timings: { ...unit.timings },
    handlers: kernel.hooks.latencies.of(unit.id),
    errors: kernel.errorCount(unit.id),
    ...(unit.error === undefined ? {} : { error: kernel.redact(unit.error) }),
  };
}

/** By id, name or path. @throws {CommandError} `not_found`. */
function findUnit(loader: Loader, id: string): LoadedUnit {
  const units = loader.units();
  const found = units.find((unit) => unit.id === id) ?? units.find((unit) => nameOf(unit) === id || unit.path === id);
  if (found === undefined) throw new CommandError(`No extension is called "${id}"`, "not_found");
  return found;
}

function nameOf(unit: { readonly path: string }): string {
  return (unit.path.split("/").at(-1) ?? unit.path).replace(/\.[cm]?[jt]sx?$/, "");
}

function stateOf(unit: LoadedUnit): UnitInfo["state"] {
  if (unit.state === "failed" || unit.state === "disabled" || unit.state === "waiting" || unit.state === "quarantined") {
    return unit.state;
  }
  if (unit.generation > 0) return "active";
  return unit.held ? "untrusted" : "loading";
}
