// What the contract tests walk over: the modules of the committed catalogue with their definitions, and a daemon with all of them.

import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import type { AnyDefinition } from "../../core/kernel/definition.ts";
import { isDefinition, isExtension } from "../../core/kernel/definition.ts";
import { root } from "../../docs/root.ts";

export interface Module {
  /** Relative to the repository. */
  readonly path: string;
  readonly fileName: string;
  readonly definitions: readonly AnyDefinition[];
}

/** Every module of a built-in with what its default export holds. */
export async function builtinModules(): Promise<Module[]> {
  const catalogue = readFileSync(join(root, "core/loader/builtins.generated.ts"), "utf8");
  const paths = [...catalogue.matchAll(/from "\.\.\/\.\.\/((?:extensions|builtin-tools)\/[^"]+)"/g)].map((match) =>
    String(match[1]),
  );
  return Promise.all(
    paths.map(async (path) => {
      const { default: exported } = (await import(/* @vite-ignore */ join(root, path))) as { default: unknown };
      return { path, fileName: basename(path, ".ts"), definitions: flat(exported) };
    }),
  );
}

function flat(value: unknown): AnyDefinition[] {
  if (Array.isArray(value)) return value.flatMap(flat);
  if (isExtension(value)) return value.contributes.flatMap(flat);
  return isDefinition(value) ? [value] : [];
}

/** `setEditorText`, `set_editor_text` → `set-editor-text`. */
export function kebab(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/_/g, "-")
    .toLowerCase();
}

export interface ObjectSchema {
  readonly type?: unknown;
  readonly properties?: Record<string, Record<string, unknown>>;
  readonly required?: readonly string[];
}

/** The JSON Schema of a zod type, as `schema.json` has it. */
export function jsonSchema(type: z.ZodType, io: "input" | "output"): ObjectSchema & Record<string, unknown> {
  return z.toJSONSchema(type, { io, unrepresentable: "any" }) as ObjectSchema & Record<string, unknown>;
}

/** A value that a property of this schema must refuse; undefined when it takes anything. */
export function wrongFor(property: Record<string, unknown>): { value: unknown } | undefined {
  if (Array.isArray(property["enum"]) || property["const"] !== undefined) return { value: "no-such-choice" };
  switch (property["type"]) {
    case "string":
      return { value: 12_345 };
    case "boolean":
      return { value: "yes" };
    case "number":
    case "integer":
      return { value: "12" };
    case "array":
      return { value: { 0: "x" } };
    case "object":
      return { value: "text" };
    default:
      return undefined;
  }
}
