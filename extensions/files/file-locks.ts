import { defineService, FileLocks } from "mortise/extension";

export default defineService(FileLocks, {
  create() {
    const tails = new Map<string, Promise<unknown>>();
    return {
      run(realPath, work) {
        const before = tails.get(realPath) ?? Promise.resolve();
        const result = before.then(work, work);
        const tail = result.catch(() => {});
        tails.set(realPath, tail);
        void tail.then(() => {
          if (tails.get(realPath) === tail) tails.delete(realPath);
        });
        return result;
      },
    };
  },
});
