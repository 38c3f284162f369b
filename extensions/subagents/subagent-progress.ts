import { subagentProgress } from "./_frames.ts";

export default subagentProgress;
