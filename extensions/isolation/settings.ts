// Which extensions run in a process of their own, and what such a process may use. Read by core/isolate.ts when one is loaded.
import { defineSetting, z } from "mortise/extension";

const isolate = defineSetting<string[]>({
  name: "isolate",
  schema: z.array(z.string().min(1)),
  default: [],
  trustedOnly: true,
  summary: "Extensions that run in a process of their own: names of files or folders, * for any text",
});

const memoryMb = defineSetting({
  name: "isolation.memoryMb",
  schema: z.number().int().min(64),
  default: 512,
  trustedOnly: true,
  summary: "Megabytes of memory for objects that one isolated extension may use",
});

const stallMs = defineSetting({
  name: "isolation.stallMs",
  schema: z.number().int().min(200),
  default: 10_000,
  trustedOnly: true,
  summary: "How long an isolated extension that owes an answer may be stuck in code before its process is ended, in milliseconds",
});

export default [isolate, memoryMb, stallMs];
