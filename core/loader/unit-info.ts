// A unit as others see it.
import { errorMessage } from "../kernel/errors.ts";
import { keyOf, type Registry } from "../kernel/registry.ts";
import type { Activator } from "./activator.ts";
import type { UnitInfo } from "./host.ts";
import type { Unit } from "./unit.ts";

/** What `--print-extensions` and the management commands show. */
export function unitInfo(unit: Unit, activator: Activator, registry: Registry): UnitInfo {
  const { hides, hiddenBy } = activator.shadows(unit);
  const entries = unit.active === undefined ? [] : registry.ownedBy(unit.active.scope);
  return {
    id: unit.id,
    path: unit.source?.path ?? unit.builtin?.name ?? unit.id,
    origin: unit.origin,
    state: unit.state,
    generation: unit.active?.number ?? 0,
    draining: unit.draining?.number,
    held: unit.held,
    files: unit.files,
    timings: unit.timings,
    error: unit.error === undefined ? undefined : errorMessage(unit.error),
    contributes: entries.map((entry) => keyOf(entry.kind, entry.name)),
    shadows: hides,
    shadowedBy: hiddenBy,
  };
}
