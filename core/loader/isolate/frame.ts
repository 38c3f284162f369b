// The frames on the line to an isolated extension.
import { z } from "zod";

const id = z.number().int();
const params = z.record(z.string(), z.unknown()).default({});

export const FrameSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("call"), id, method: z.string(), params }),
  z.object({ type: z.literal("tell"), method: z.string(), params }),
  z.object({ type: z.literal("abort"), id }),
  z.object({ type: z.literal("result"), id, value: z.unknown().optional() }),
  z.object({ type: z.literal("error"), id, error: z.unknown().optional() }),
]);
export type Frame = z.input<typeof FrameSchema>;

/** A contribution as the child tells of it. */
export const Registration = z.object({
  kind: z.string(),
  name: z.string(),
  /** Which of several of one kind and name: hooks. */
  nth: id,
  /** Fields that are data, as far as the kind has them. */
  fields: z.record(z.string(), z.unknown()),
});
export type Registration = z.infer<typeof Registration>;

/** What a load looked at, told before it fails as well. */
export const LookedAt = z.object({
  /** Files that were read, as they were then. */
  files: z.record(z.string(), z.object({ fingerprint: z.string(), hash: z.string() })),
  /** Candidates that were absent. */
  missing: z.array(z.string()),
});
export type LookedAt = z.infer<typeof LookedAt>;

/** The answer to `load`. */
export const Loaded = LookedAt.extend({ registrations: z.array(Registration) });

/** What a child is told first. */
export const LoadParams = z.object({
  path: z.string(),
  home: z.string(),
  mode: z.enum(["rpc", "rpc-ui"]),
  hasUI: z.boolean(),
  settings: z.record(z.string(), z.unknown()),
});
export type LoadParams = z.infer<typeof LoadParams>;
