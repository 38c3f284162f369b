import { defineFamily } from "./_family.ts";
import { OMP } from "./_traits.ts";

export default defineFamily(OMP, "Extensions, hooks and custom tools written for oh-my-pi.", 10);
