import { defineCommand, Extensions, UnitInfo, z } from "mortise/extension";

export default defineCommand({
  name: "get_extensions",
  group: "Extensions",
  summary: "Every known extension, built-in ones included: state, version, files, timings, errors and what it contributes.",
  concurrency: "serial",
  sealed: true,
  source: "mortise",
  params: z.object({}),
  result: z.object({ extensions: z.array(UnitInfo) }),
  example: {
    params: {},
    result: {
      extensions: [
        {
          id: "/home/ada/.mortise/extensions/lint.ts",
          name: "lint",
          origin: "user",
          state: "active",
          path: "/home/ada/.mortise/extensions/lint.ts",
          generation: 2,
          contributes: ["tool:lint", "hook:toolDecide"],
          shadows: [],
          shadowedBy: [],
          files: ["/home/ada/.mortise/extensions/lint.ts"],
          timings: { resolve: 0.4, transpile: 9.1, evaluate: 11.8, setup: 0.2, swap: 0.1 },
          handlers: { calls: 14, p95Ms: 1.5 },
          errors: 0,
        },
      ],
    },
  },
  run(ctx) {
    return { extensions: [...ctx.use(Extensions).list()] };
  },
});
