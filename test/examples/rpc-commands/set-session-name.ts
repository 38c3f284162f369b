// Changes what a built-in wire command does. Its parameters, its result and the way it is scheduled stay as they are; `next` runs
// the version below. If this threw before `next`, the built-in would answer and the failure be reported.
import { overrideCommand } from "mortise/extension";

export default overrideCommand<{ name: string }>("set_session_name", {
  async run(ctx, params, next) {
    // The checked parameters are this call's own: what is changed in them is what `next` gets.
    params.name = params.name.trim().slice(0, 40);
    const data = await next();
    ctx.log.info("The session was named", { name: params.name });
    return data;
  },
});
