// `withFileMutationQueue`: changes to one file run one after another, whichever unit makes them.
import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { createToken, defineService } from "mortise/extension";

export interface FileQueue {
  /** Runs `change` when every earlier change of the same file is over; the file may not exist yet. */
  run<T>(path: string, change: () => Promise<T> | T): Promise<T>;
}

export const FileQueue = createToken<FileQueue>("dialects.file-queue");

export default defineService(FileQueue, {
  create() {
    const tails = new Map<string, Promise<unknown>>();
    return {
      async run(path, change) {
        const key = await realpath(path).catch(() => resolve(path));
        const before = tails.get(key) ?? Promise.resolve();
        const mine = before.then(change, change);
        const tail = mine.catch(() => {});
        tails.set(key, tail);
        try {
          return await mine;
        } finally {
          if (tails.get(key) === tail) tails.delete(key);
        }
      },
    };
  },
});
