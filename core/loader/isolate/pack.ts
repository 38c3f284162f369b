// Values that cross the border between the daemon and an isolated extension. Plain data is copied; signals and conversations become
// references, so that what comes back is again the object that was sent; errors keep their class, text and fields.

/** What stands for an object that stays on its side. */
export interface Reference {
  readonly kind: "signal" | "conversation";
  /** Place in the list of objects sent with one call. */
  readonly index: number;
  /** For a conversation: what the other side may read of it. */
  readonly data?: Record<string, unknown> | undefined;
}

/** Decides which objects travel as references. */
export type Referrer = (value: object) => Reference | undefined;

const REFERENCE = "$mortise.ref";
const ERROR = "$mortise.error";
/** Fields of our error classes that decide how the other side goes on. */
const ERROR_FIELDS = ["code", "kind", "status", "retryAfterMs", "details", "owner", "phase"] as const;
const MAX_DEPTH = 100;

/** A copy that JSON can carry. Functions and symbols are left out. @throws {Error} for data that is nested too deep or in circles. */
export function pack(value: unknown, refer: Referrer, depth = 0): unknown {
  if (typeof value === "function" || typeof value === "symbol") return undefined;
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) throw new Error("A value for an isolated extension is nested too deep, or in circles");
  const reference = refer(value);
  if (reference !== undefined) return { [REFERENCE]: reference };
  if (value instanceof Error) return { [ERROR]: packError(value, refer, depth) };
  if (Array.isArray(value)) return value.map((each) => pack(each, refer, depth + 1) ?? null);
  if (value instanceof Date) return value.toJSON();
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, pack(each, refer, depth + 1)]));
}

function packError(error: Error, refer: Referrer, depth: number): Record<string, unknown> {
  const fields = error as unknown as Record<string, unknown>;
  const kept = ERROR_FIELDS.filter((name) => fields[name] !== undefined);
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    fields: Object.fromEntries(kept.map((name) => [name, pack(fields[name], refer, depth + 1)])),
  };
}

/** The value again; `revive` gives the object behind a reference. */
export function unpack(value: unknown, revive: (reference: Reference) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => unpack(each, revive));
  if (REFERENCE in value) return revive(value[REFERENCE] as Reference);
  if (ERROR in value) return unpackError(value[ERROR] as ReturnType<typeof packError>, revive);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, unpack(each, revive)]));
}

/** Classes are told by brands that are read by name, so a plain error with the brand is one of them. */
const BRANDS: Record<string, string> = {
  CommandError: "command",
  ToolError: "tool",
  ProviderError: "provider",
  ExtensionError: "extension",
};

function unpackError(packed: Record<string, unknown>, revive: (reference: Reference) => unknown): Error {
  const name = String(packed["name"]);
  const error = new Error(String(packed["message"]));
  const brand = BRANDS[name];
  Object.assign(error, unpack(packed["fields"], revive), { name });
  if (typeof packed["stack"] === "string") error.stack = packed["stack"];
  if (brand !== undefined) Object.defineProperty(error, Symbol.for("mortise.error"), { value: brand });
  return error;
}
