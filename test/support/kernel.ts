// A bare kernel over an array of frames: the real parts, no extension but those a test adds.

import type { AnyDefinition } from "../../core/kernel/definition.ts";
import { Kernel, type KernelOptions } from "../../core/kernel/kernel.ts";
import { type Origin, Scope } from "../../core/kernel/scope.ts";
import type { Frame } from "../../protocol/frame.ts";

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export interface BareKernel {
  kernel: Kernel;
  frames: Frame[];
  /** Adds contributions as one generation of `id`. */
  add(id: string, origin: Origin, ...definitions: AnyDefinition[]): Scope;
  send(value: unknown): void;
  /** The next frame that fits, from the first not yet taken on. */
  next(fits: (frame: Frame) => boolean): Promise<Frame>;
}

export function bareKernel(options: Partial<KernelOptions> = {}): BareKernel {
  const frames: Frame[] = [];
  const waiting = new Set<() => void>();
  const push = (frame: Frame) => {
    frames.push(frame);
    for (const wake of [...waiting]) wake();
  };
  const kernel = new Kernel({
    mode: "rpc-ui",
    hasUI: true,
    log: quiet,
    validateResults: true,
    sink: {
      send: (frame) => push(JSON.parse(JSON.stringify(frame)) as Frame),
      sendText: (json) => push(JSON.parse(json) as Frame),
    },
    ...options,
  });
  kernel.dispatcher.open();
  let order = 0;
  return {
    kernel,
    frames,
    add(id, origin, ...definitions) {
      const scope = new Scope({ owner: { id, origin, order: order++ }, generation: 1 });
      scope.state = "active";
      kernel.registry.swap({ add: definitions.map((definition) => kernel.registry.entry(definition, scope)) });
      return scope;
    },
    send: (value) => kernel.dispatcher.line(typeof value === "string" ? value : JSON.stringify(value)),
    next(fits) {
      let index = 0;
      return new Promise((resolve) => {
        const look = () => {
          for (; index < frames.length; index++) {
            const frame = frames[index] as Frame;
            if (fits(frame)) {
              waiting.delete(look);
              resolve(frame);
              return;
            }
          }
        };
        waiting.add(look);
        look();
      });
    },
  };
}
