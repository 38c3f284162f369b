import { subagentLifecycle } from "./_frames.ts";

export default subagentLifecycle;
