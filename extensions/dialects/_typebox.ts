// typebox for extensions that import it, under its own name and the older one. Loaded when first imported.
import type { VirtualModule } from "mortise/extension";

/** The namespace of `typebox` and `@sinclair/typebox`. */
export async function typeboxModule(): Promise<VirtualModule> {
  const typebox = await import("typebox");
  return {
    ...typebox,
    // Names of the older package that the newer one does not export.
    Kind: Symbol.for("TypeBox.Kind"),
    Hint: Symbol.for("TypeBox.Hint"),
    OptionalKind: Symbol.for("TypeBox.Optional"),
    ReadonlyKind: Symbol.for("TypeBox.Readonly"),
    TransformKind: Symbol.for("TypeBox.Transform"),
    TypeGuard: typebox,
    FormatRegistry: (await import("typebox/format")).default,
    TypeRegistry: new Map(),
  };
}

export async function typeboxValueModule(): Promise<VirtualModule> {
  return { ...(await import("typebox/value")) };
}

export async function typeboxCompileModule(): Promise<VirtualModule> {
  const compile = await import("typebox/compile");
  return { ...compile, TypeCompiler: compile };
}
