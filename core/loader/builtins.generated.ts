// Written by docs/generate.ts from the tracked files of extensions/ and builtin-tools/. Do not edit.
// biome-ignore-all format lint assist: generated
import type { BuiltinUnit } from "./host.ts";
import m0 from "../../builtin-tools/bash.ts";
import m1 from "../../extensions/host-tools/host-tool-call.ts";
import m2 from "../../extensions/host-tools/set-host-tools.ts";
import m3 from "../../extensions/host-uris/host-uri-request.ts";
import m4 from "../../extensions/host-uris/set-host-uri-schemes.ts";
import m5 from "../../extensions/host-uris/uris.ts";
import m6 from "../../extensions/prompting/abort-and-prompt.ts";
import m7 from "../../extensions/prompting/abort.ts";
import m8 from "../../extensions/prompting/follow-up.ts";
import m9 from "../../extensions/prompting/prompt-result.ts";
import m10 from "../../extensions/prompting/prompt.ts";
import m11 from "../../extensions/prompting/steer.ts";
import m12 from "../../extensions/protocol/negotiate-protocol.ts";
import m13 from "../../extensions/providers/anthropic.ts";
import m14 from "../../extensions/providers/offline.ts";
import m15 from "../../extensions/providers/transport.ts";
import m16 from "../../extensions/queue-modes/set-follow-up-mode.ts";
import m17 from "../../extensions/queue-modes/set-interrupt-mode.ts";
import m18 from "../../extensions/queue-modes/set-message-updates.ts";
import m19 from "../../extensions/queue-modes/set-steering-mode.ts";
import m20 from "../../extensions/settings/known-settings.ts";
import m21 from "../../extensions/settings/settings.ts";
import m22 from "../../extensions/shell/abort-bash.ts";
import m23 from "../../extensions/shell/bash.ts";
import m24 from "../../extensions/shell/rpc-runs.ts";
import m25 from "../../extensions/shell/shell.ts";
import m26 from "../../extensions/skills/skill.ts";
import m27 from "../../extensions/skills/skills.ts";
import m28 from "../../extensions/slash/available-commands-update.ts";
import m29 from "../../extensions/slash/command-output.ts";
import m30 from "../../extensions/slash/config-update.ts";
import m31 from "../../extensions/slash/get-available-commands.ts";
import m32 from "../../extensions/slash/session-info-update.ts";
import m33 from "../../extensions/slash/slash-commands.ts";
import m34 from "../../extensions/state/conversation-fields.ts";
import m35 from "../../extensions/state/get-state.ts";
import m36 from "../../extensions/templates/templates.ts";
import m37 from "../../extensions/ui/cancel.ts";
import m38 from "../../extensions/ui/confirm.ts";
import m39 from "../../extensions/ui/editor.ts";
import m40 from "../../extensions/ui/input.ts";
import m41 from "../../extensions/ui/notify.ts";
import m42 from "../../extensions/ui/open-url.ts";
import m43 from "../../extensions/ui/select.ts";
import m44 from "../../extensions/ui/set-editor-text.ts";
import m45 from "../../extensions/ui/set-status.ts";
import m46 from "../../extensions/ui/set-title.ts";
import m47 from "../../extensions/ui/set-widget.ts";

/** Every built-in unit; `sources` are relative to the repository. */
export const builtins: readonly BuiltinUnit[] = [
  { id: "builtin:host-tools", name: "host-tools", sources: "extensions/host-tools", definitions: () => [m1, m2] },
  { id: "builtin:host-uris", name: "host-uris", sources: "extensions/host-uris", definitions: () => [m3, m4, m5] },
  { id: "builtin:prompting", name: "prompting", sources: "extensions/prompting", definitions: () => [m6, m7, m8, m9, m10, m11] },
  { id: "builtin:protocol", name: "protocol", sources: "extensions/protocol", definitions: () => [m12] },
  { id: "builtin:providers", name: "providers", sources: "extensions/providers", definitions: () => [m13, m14, m15] },
  { id: "builtin:queue-modes", name: "queue-modes", sources: "extensions/queue-modes", definitions: () => [m16, m17, m18, m19] },
  { id: "builtin:settings", name: "settings", sources: "extensions/settings", definitions: () => [m20, m21] },
  { id: "builtin:shell", name: "shell", sources: "extensions/shell", definitions: () => [m22, m23, m24, m25] },
  { id: "builtin:skills", name: "skills", sources: "extensions/skills", definitions: () => [m26, m27] },
  { id: "builtin:slash", name: "slash", sources: "extensions/slash", definitions: () => [m28, m29, m30, m31, m32, m33] },
  { id: "builtin:state", name: "state", sources: "extensions/state", definitions: () => [m34, m35] },
  { id: "builtin:templates", name: "templates", sources: "extensions/templates", definitions: () => [m36] },
  { id: "builtin:ui", name: "ui", sources: "extensions/ui", definitions: () => [m37, m38, m39, m40, m41, m42, m43, m44, m45, m46, m47] },
  { id: "builtin:tool/bash", name: "bash", sources: "builtin-tools/bash.ts", definitions: () => [m0] },
];
