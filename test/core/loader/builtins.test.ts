// house.md 2.13: every built-in is loaded natively and through the evaluator; both must contribute the same.
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { builtins } from "../../../core/loader/builtins.generated.ts";
import { start, stopLoaders } from "./_support.ts";

afterEach(stopLoaders);

const sourceRoot = fileURLToPath(new URL("../../../", import.meta.url));

test("built-ins contribute the same from the catalogue and from their sources", { timeout: 120_000 }, async () => {
  const keys = (units: ReturnType<Awaited<ReturnType<typeof start>>["loader"]["units"]>) =>
    Object.fromEntries(units.map((unit) => [unit.id, [...unit.contributes].sort()]));
  const { loader } = await start(undefined, { builtins });
  const native = keys(loader.units());
  // Without a daemon around them they are not to go on.
  await loader.stop();
  const evaluated = await start(undefined, {
    builtins,
    dev: true,
    sourceRoot,
    patienceMs: 60_000,
    setupLimitMs: 1,
  });
  // A set-up may need services of a whole daemon: then it fails in both, and the others are compared.
  const loadErrors = evaluated.host.reports.filter((report) => report.phase !== "setup");
  expect(loadErrors.map((report) => `${report.owner}: ${String(report.error)}`)).toEqual([]);
  expect(keys(evaluated.loader.units())).toEqual(native);
});
