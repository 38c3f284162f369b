import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { SecondTries } from "./test/support/second-tries.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^mortise$/, replacement: at("./protocol/index.ts") },
      { find: "mortise/extension", replacement: at("./core/extension.ts") },
      { find: "mortise/protocol", replacement: at("./protocol/protocol.ts") },
      { find: "mortise/testing", replacement: at("./core/testing.ts") },
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/setup.ts"],
    pool: "threads",
    isolate: false,
    // Most tests wait for child processes: three keep both cores of a small machine busy.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // On CI alone: docs/decisions/second-try.md.
    retry: Number(process.env["MORTISE_TEST_RETRY"] ?? 0),
    reporters: ["default", new SecondTries()],
  },
});
