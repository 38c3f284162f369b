import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

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
    pool: "threads",
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
