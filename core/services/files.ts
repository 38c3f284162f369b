// Changing files one after another: calls of one turn, of several conversations and of extensions share one queue a file.
import { createToken } from "../kernel/services.ts";

export interface FileLocks {
  /**
   * Runs `work` when all earlier work on the file has ended. `realPath` has its symbolic links resolved, so that all names of a
   * file share a queue.
   */
  run<T>(realPath: string, work: () => Promise<T>): Promise<T>;
}

export const FileLocks = createToken<FileLocks>("file locks");
