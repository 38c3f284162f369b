// State that survives a reload. `scope.hot.data` of this version is what the version before left there. Keep plain data: it is
// copied by structured clone, and what cannot be copied is dropped and reported.
import { defineExtension, defineTool, z } from "mortise/extension";

interface State {
  count: number;
  names: string[];
}

// When the shape changes, raise the version and say how to read the old one. Without `migrate` data of another version is dropped.
export const hot = {
  version: 2,
  migrate: (old: unknown, from: unknown): State => {
    if (from === 1) return { count: z.object({ count: z.number() }).parse(old).count, names: [] };
    throw new Error(`cannot read version ${String(from)}`);
  },
};

export default defineExtension({
  name: "counter",
  setup(scope) {
    const state = (scope.hot.data as State | undefined) ?? { count: 0, names: [] };
    scope.hot.data = state;
    scope.add(
      defineTool({
        name: "count",
        description: "Counts a name and tells how many there were.",
        params: z.object({ name: z.string() }),
        run(_ctx, { name }) {
          state.count++;
          state.names.push(name);
          return `${state.count} counted, the last ones: ${state.names.slice(-3).join(", ")}`;
        },
      }),
    );
  },
});
