// A dialect from the table row of its family.
import { type DialectDefinition, defineDialect, defineExtension } from "mortise/extension";
import { familyModules, typeboxModules } from "./_modules.ts";
import { belongsTo, OMP, PI, type Traits, VEYYON } from "./_traits.ts";

const EVERY_PACKAGE = [PI, OMP, VEYYON].flatMap((traits) => traits.packages);

/** Imports decide; the manifest key where there are none (extensions.md §3.2 "Dialect differences"). */
export function defineFamily(traits: Traits, summary: string, priority: number): DialectDefinition {
  return defineDialect({
    name: traits.family,
    summary,
    priority,
    matches: ({ specifiers, manifestKey }) =>
      specifiers.some((specifier) => belongsTo(specifier, traits.packages)) ||
      (manifestKey === traits.manifestKey && !specifiers.some((specifier) => belongsTo(specifier, EVERY_PACKAGE))),
    virtualModules: (daemon) => ({
      ...familyModules(traits, daemon),
      ...(traits.family === "pi" ? typeboxModules() : {}),
    }),
    adapt: (factory, { unitId }) =>
      defineExtension({
        name: unitId,
        // What a family's units see is a tenth of all our code, read when the first of them is there.
        async setup(scope) {
          const { runFactory } = await import("./_api.ts");
          await runFactory(factory, traits, scope);
        },
      }),
  });
}
