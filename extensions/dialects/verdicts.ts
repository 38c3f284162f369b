// What the `tool_call` handlers of all units said about a call, between the point where they may change its arguments and the
// point where they may block it. Kept by the call's own signal, so that nothing is left of a call that ended in between.
import { createToken, defineService } from "mortise/extension";

export type Verdict =
  | { readonly state: "running" }
  | { readonly state: "allowed" }
  | { readonly state: "blocked"; readonly reason: string; readonly endRun?: boolean };

export interface CallVerdicts {
  /** By handler identity. */
  readonly byHandler: Map<object, Verdict>;
  /** True once any handler blocked: later ones are not asked, as in pi. */
  blocked: boolean;
}

export interface Verdicts {
  of(signal: AbortSignal, toolCallId: string): CallVerdicts;
  forget(signal: AbortSignal, toolCallId: string): void;
}

export const Verdicts = createToken<Verdicts>("dialects.verdicts");

export default defineService(Verdicts, {
  create() {
    const calls = new WeakMap<AbortSignal, Map<string, CallVerdicts>>();
    return {
      of(signal, toolCallId) {
        const ofSignal = calls.get(signal) ?? new Map<string, CallVerdicts>();
        calls.set(signal, ofSignal);
        const verdicts = ofSignal.get(toolCallId) ?? { byHandler: new Map(), blocked: false };
        ofSignal.set(toolCallId, verdicts);
        return verdicts;
      },
      forget: (signal, toolCallId) => {
        calls.get(signal)?.delete(toolCallId);
      },
    };
  },
});
