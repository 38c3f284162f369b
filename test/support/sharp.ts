// The image library, or undefined where the optional packages were left out; tests of it are skipped there.
export const sharp = await import("sharp").then(
  (module) => module.default,
  () => undefined,
);
