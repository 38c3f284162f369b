import { ContextFileNames } from "./_settings.ts";

export default [ContextFileNames];
