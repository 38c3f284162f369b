// What an import gets of a module: the names of an ES module, or of anything else its default with the own keys beside it.
import type { ModuleRecord } from "./module-graph.ts";

/** What `import * as` gives. */
export function namespaceOf(record: ModuleRecord): unknown {
  const value = record.module.exports;
  if (isObjectLike(value) && "__esModule" in value && value.__esModule) return value;
  if (record.state === "done" && record.namespace !== undefined) return record.namespace;
  record.namespace = { ...(isObjectLike(value) ? value : {}), default: value };
  return record.namespace;
}

/** Node's lexer does not see every name of a CommonJS package; the ones asked for are taken from its default export. */
export function withDefaultKeys(namespace: unknown, names: readonly string[]): unknown {
  if (!isObjectLike(namespace) || names.every((name) => name in namespace)) return namespace;
  const whole = "default" in namespace ? namespace.default : undefined;
  if (!isObjectLike(whole)) return "default" in namespace ? namespace : { ...namespace, default: namespace };
  if (!names.some((name) => !(name in namespace) && name in whole)) return namespace;
  return { ...whole, ...namespace };
}

export function hasKey(namespace: unknown, name: string): boolean {
  return isObjectLike(namespace) && name in namespace;
}

function isObjectLike(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
