// Whether commands of plain `rpc` get a terminal here: without the optional node-pty they run over pipes.
import { createRequire } from "node:module";

export const hasTerminal = (() => {
  try {
    return createRequire(import.meta.url)("node-pty") !== undefined;
  } catch {
    return false;
  }
})();
