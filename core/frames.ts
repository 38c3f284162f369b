// Outbound frames that no extension owns: what the kernel and the transport send themselves.
import { z } from "zod";
import { defineFrame } from "./kernel/definition.ts";

export const extensionError = defineFrame({
  name: "extension_error",
  summary: "A handler, a load or a timer of an extension failed; the daemon goes on.",
  scope: "process",
  source: "both",
  fields: z.object({
    extensionPath: z.string().describe("Path of the extension, or builtin:<name>"),
    event: z.string().describe("Hook point, load, or command:<name>"),
    error: z.string(),
    stack: z.string().optional(),
    phase: z.enum(["load", "setup", "validate", "hook", "command", "tool", "timer", "async", "dispose"]).optional(),
    generation: z.number().int().optional(),
  }),
  example: {
    type: "extension_error",
    extensionPath: "/home/ada/.mortise/extensions/lint.ts",
    event: "toolDecide",
    error: "boom",
  },
});

export const ready = defineFrame({
  name: "ready",
  summary: "First line of stdout, written before anything is loaded.",
  scope: "process",
  source: "both",
  fields: z.object({
    protocolVersion: z.literal(1),
    supportedProtocolVersions: z.array(z.number().int()),
    maxFrameBytes: z.number().int(),
    maxReassembledFrameBytes: z.number().int(),
  }),
  example: {
    type: "ready",
    protocolVersion: 1,
    supportedProtocolVersions: [1, 2],
    maxFrameBytes: 1048576,
    maxReassembledFrameBytes: 67108864,
  },
});

export const response = defineFrame({
  name: "response",
  summary: "The answer to a command; the only one, except that an acknowledged prompt may fail later under the same id.",
  scope: "process",
  source: "both",
  fields: z.object({
    id: z.union([z.string(), z.number()]).optional(),
    command: z.string().optional(),
    success: z.boolean(),
    data: z.unknown().optional(),
    error: z.string().optional(),
    code: z.string().optional(),
  }),
  example: { id: "req_2", type: "response", command: "set_model", success: false, error: "Model not found: provider/model" },
});

export const rpcChunk = defineFrame({
  name: "rpc_chunk",
  summary: "Protocol v2: one piece of a frame over 1 MiB; the pieces of a frame follow one another without anything between.",
  scope: "process",
  source: "002",
  fields: z.object({
    chunkId: z.string(),
    index: z.number().int(),
    count: z.number().int(),
    byteLength: z.number().int().describe("UTF-8 bytes of the whole frame"),
    data: z.string().describe("Base64"),
  }),
  example: { type: "rpc_chunk", chunkId: "rpc-1", index: 0, count: 7, byteLength: 1600042, data: "eyJ0eXBlIjoi…" },
});

export const uiRequest = defineFrame({
  name: "extension_ui_request",
  summary: "A dialog or a notice for the person in front of the host; the methods are listed under “UI methods”.",
  scope: "process",
  source: "both",
  fields: z.looseObject({
    id: z.string(),
    method: z.string(),
    timeout: z.number().optional().describe("Milliseconds; the host applies the default itself when it has passed"),
  }),
  example: { type: "extension_ui_request", id: "ui_7", method: "confirm", title: "Confirm", message: "Continue?" },
});

/** Registered by the composition root. */
export const coreFrames = [ready, response, rpcChunk, uiRequest, extensionError];
