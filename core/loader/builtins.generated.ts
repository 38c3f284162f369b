// Written by docs/generate.ts from the tracked files of extensions/ and builtin-tools/. Do not edit.
// biome-ignore-all format lint assist: generated
import type { BuiltinUnit } from "./host.ts";
import m0 from "../../builtin-tools/bash.ts";
import m1 from "../../builtin-tools/edit.ts";
import m2 from "../../builtin-tools/read.ts";
import m3 from "../../builtin-tools/write.ts";
import m4 from "../../extensions/dialects/file-queue.ts";
import m5 from "../../extensions/dialects/omp.ts";
import m6 from "../../extensions/dialects/pi.ts";
import m7 from "../../extensions/dialects/prompt-memory.ts";
import m8 from "../../extensions/dialects/shared-events.ts";
import m9 from "../../extensions/dialects/verdicts.ts";
import m10 from "../../extensions/dialects/veyyon.ts";
import m11 from "../../extensions/files/file-locks.ts";
import m12 from "../../extensions/host-tools/host-tool-call.ts";
import m13 from "../../extensions/host-tools/set-host-tools.ts";
import m14 from "../../extensions/host-uris/host-uri-request.ts";
import m15 from "../../extensions/host-uris/set-host-uri-schemes.ts";
import m16 from "../../extensions/host-uris/uris.ts";
import m17 from "../../extensions/models/cycle-model.ts";
import m18 from "../../extensions/models/get-available-models.ts";
import m19 from "../../extensions/models/model-changed.ts";
import m20 from "../../extensions/models/models.ts";
import m21 from "../../extensions/models/set-model.ts";
import m22 from "../../extensions/prompt/append-file.ts";
import m23 from "../../extensions/prompt/context-files.ts";
import m24 from "../../extensions/prompt/environment.ts";
import m25 from "../../extensions/prompt/prompt-files.ts";
import m26 from "../../extensions/prompt/role.ts";
import m27 from "../../extensions/prompt/settings.ts";
import m28 from "../../extensions/prompt/skills.ts";
import m29 from "../../extensions/prompt/system-file.ts";
import m30 from "../../extensions/prompt/tools.ts";
import m31 from "../../extensions/prompting/abort-and-prompt.ts";
import m32 from "../../extensions/prompting/abort.ts";
import m33 from "../../extensions/prompting/follow-up.ts";
import m34 from "../../extensions/prompting/prompt-result.ts";
import m35 from "../../extensions/prompting/prompt.ts";
import m36 from "../../extensions/prompting/steer.ts";
import m37 from "../../extensions/protocol/negotiate-protocol.ts";
import m38 from "../../extensions/providers/anthropic.ts";
import m39 from "../../extensions/providers/offline.ts";
import m40 from "../../extensions/providers/openai.ts";
import m41 from "../../extensions/providers/transport.ts";
import m42 from "../../extensions/queue-modes/set-follow-up-mode.ts";
import m43 from "../../extensions/queue-modes/set-interrupt-mode.ts";
import m44 from "../../extensions/queue-modes/set-message-updates.ts";
import m45 from "../../extensions/queue-modes/set-steering-mode.ts";
import m46 from "../../extensions/retry/abort-retry.ts";
import m47 from "../../extensions/retry/auto-retry-end.ts";
import m48 from "../../extensions/retry/auto-retry-start.ts";
import m49 from "../../extensions/retry/fallback-frames.ts";
import m50 from "../../extensions/retry/hooks.ts";
import m51 from "../../extensions/retry/set-auto-retry.ts";
import m52 from "../../extensions/retry/settings.ts";
import m53 from "../../extensions/retry/slot.ts";
import m54 from "../../extensions/sessions/branch.ts";
import m55 from "../../extensions/sessions/get-branch-messages.ts";
import m56 from "../../extensions/sessions/get-entries.ts";
import m57 from "../../extensions/sessions/get-last-assistant-text.ts";
import m58 from "../../extensions/sessions/get-messages-page.ts";
import m59 from "../../extensions/sessions/get-messages.ts";
import m60 from "../../extensions/sessions/get-session-stats.ts";
import m61 from "../../extensions/sessions/get-tree.ts";
import m62 from "../../extensions/sessions/list-sessions.ts";
import m63 from "../../extensions/sessions/new-session.ts";
import m64 from "../../extensions/sessions/set-session-name.ts";
import m65 from "../../extensions/sessions/switch-session.ts";
import m66 from "../../extensions/settings/known-settings.ts";
import m67 from "../../extensions/settings/settings.ts";
import m68 from "../../extensions/shell/abort-bash.ts";
import m69 from "../../extensions/shell/bash.ts";
import m70 from "../../extensions/shell/rpc-runs.ts";
import m71 from "../../extensions/shell/shell.ts";
import m72 from "../../extensions/skills/skill.ts";
import m73 from "../../extensions/skills/skills.ts";
import m74 from "../../extensions/slash/available-commands-update.ts";
import m75 from "../../extensions/slash/command-output.ts";
import m76 from "../../extensions/slash/config-update.ts";
import m77 from "../../extensions/slash/context.ts";
import m78 from "../../extensions/slash/extensions.ts";
import m79 from "../../extensions/slash/get-available-commands.ts";
import m80 from "../../extensions/slash/help.ts";
import m81 from "../../extensions/slash/model.ts";
import m82 from "../../extensions/slash/queue.ts";
import m83 from "../../extensions/slash/reload.ts";
import m84 from "../../extensions/slash/rename.ts";
import m85 from "../../extensions/slash/session-info-update.ts";
import m86 from "../../extensions/slash/session.ts";
import m87 from "../../extensions/slash/settings.ts";
import m88 from "../../extensions/slash/skills.ts";
import m89 from "../../extensions/slash/slash-commands.ts";
import m90 from "../../extensions/slash/thinking.ts";
import m91 from "../../extensions/slash/todo.ts";
import m92 from "../../extensions/slash/tools.ts";
import m93 from "../../extensions/slash/usage.ts";
import m94 from "../../extensions/state/conversation-fields.ts";
import m95 from "../../extensions/state/get-state.ts";
import m96 from "../../extensions/templates/templates.ts";
import m97 from "../../extensions/thinking/cycle-thinking-level.ts";
import m98 from "../../extensions/thinking/get-available-thinking-levels.ts";
import m99 from "../../extensions/thinking/set-thinking-level.ts";
import m100 from "../../extensions/thinking/thinking-level-changed.ts";
import m101 from "../../extensions/ui/cancel.ts";
import m102 from "../../extensions/ui/confirm.ts";
import m103 from "../../extensions/ui/editor.ts";
import m104 from "../../extensions/ui/input.ts";
import m105 from "../../extensions/ui/notify.ts";
import m106 from "../../extensions/ui/open-url.ts";
import m107 from "../../extensions/ui/select.ts";
import m108 from "../../extensions/ui/set-editor-text.ts";
import m109 from "../../extensions/ui/set-status.ts";
import m110 from "../../extensions/ui/set-title.ts";
import m111 from "../../extensions/ui/set-widget.ts";

/** Every built-in unit; `sources` are relative to the repository. */
export const builtins: readonly BuiltinUnit[] = [
  { id: "builtin:dialects", name: "dialects", sources: "extensions/dialects", definitions: () => [m4, m5, m6, m7, m8, m9, m10] },
  { id: "builtin:files", name: "files", sources: "extensions/files", definitions: () => [m11] },
  { id: "builtin:host-tools", name: "host-tools", sources: "extensions/host-tools", definitions: () => [m12, m13] },
  { id: "builtin:host-uris", name: "host-uris", sources: "extensions/host-uris", definitions: () => [m14, m15, m16] },
  { id: "builtin:models", name: "models", sources: "extensions/models", definitions: () => [m17, m18, m19, m20, m21] },
  { id: "builtin:prompt", name: "prompt", sources: "extensions/prompt", definitions: () => [m22, m23, m24, m25, m26, m27, m28, m29, m30] },
  { id: "builtin:prompting", name: "prompting", sources: "extensions/prompting", definitions: () => [m31, m32, m33, m34, m35, m36] },
  { id: "builtin:protocol", name: "protocol", sources: "extensions/protocol", definitions: () => [m37] },
  { id: "builtin:providers", name: "providers", sources: "extensions/providers", definitions: () => [m38, m39, m40, m41] },
  { id: "builtin:queue-modes", name: "queue-modes", sources: "extensions/queue-modes", definitions: () => [m42, m43, m44, m45] },
  { id: "builtin:retry", name: "retry", sources: "extensions/retry", definitions: () => [m46, m47, m48, m49, m50, m51, m52, m53] },
  { id: "builtin:sessions", name: "sessions", sources: "extensions/sessions", definitions: () => [m54, m55, m56, m57, m58, m59, m60, m61, m62, m63, m64, m65] },
  { id: "builtin:settings", name: "settings", sources: "extensions/settings", definitions: () => [m66, m67] },
  { id: "builtin:shell", name: "shell", sources: "extensions/shell", definitions: () => [m68, m69, m70, m71] },
  { id: "builtin:skills", name: "skills", sources: "extensions/skills", definitions: () => [m72, m73] },
  { id: "builtin:slash", name: "slash", sources: "extensions/slash", definitions: () => [m74, m75, m76, m77, m78, m79, m80, m81, m82, m83, m84, m85, m86, m87, m88, m89, m90, m91, m92, m93] },
  { id: "builtin:state", name: "state", sources: "extensions/state", definitions: () => [m94, m95] },
  { id: "builtin:templates", name: "templates", sources: "extensions/templates", definitions: () => [m96] },
  { id: "builtin:thinking", name: "thinking", sources: "extensions/thinking", definitions: () => [m97, m98, m99, m100] },
  { id: "builtin:ui", name: "ui", sources: "extensions/ui", definitions: () => [m101, m102, m103, m104, m105, m106, m107, m108, m109, m110, m111] },
  { id: "builtin:tool/bash", name: "bash", sources: "builtin-tools/bash.ts", definitions: () => [m0] },
  { id: "builtin:tool/edit", name: "edit", sources: "builtin-tools/edit.ts", definitions: () => [m1] },
  { id: "builtin:tool/read", name: "read", sources: "builtin-tools/read.ts", definitions: () => [m2] },
  { id: "builtin:tool/write", name: "write", sources: "builtin-tools/write.ts", definitions: () => [m3] },
];
