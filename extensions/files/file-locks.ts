import { defineService, FileLocks, ProjectCode } from "mortise/extension";

export default defineService(FileLocks, {
  create(ctx) {
    const tails = new Map<string, Promise<unknown>>();
    return {
      run(realPath, work) {
        // Before the write, so that whoever follows the file knows when it sees the change.
        ctx.tryUse(ProjectCode)?.writing(realPath);
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
