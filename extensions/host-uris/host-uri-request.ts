import { defineHostRequest, z } from "mortise/extension";

/** A read or write of a host-owned URL (000_…, "Host URI Sub-Protocol"). */
export default defineHostRequest({
  name: "host_uri_request",
  summary: "Asks the host to read or write one of its URLs.",
  ask: z.object({
    operation: z.enum(["read", "write"]),
    url: z.string(),
    content: z.string().optional().describe("Full replacement text of a write"),
  }),
  answerType: "host_uri_result",
  answer: z.object({
    content: z.string().optional().catch(undefined),
    contentType: z.string().optional().catch(undefined),
    notes: z.array(z.string()).optional().catch(undefined),
    immutable: z.boolean().optional().catch(undefined),
    isError: z.unknown().optional(),
    error: z.string().optional().catch(undefined),
  }),
  misfitMessage: "Invalid host_uri_result: expected an object",
  cancelType: "host_uri_cancel",
  idPrefix: "uri",
  disconnectMessage: "RPC client disconnected before host URI request completed",
});
