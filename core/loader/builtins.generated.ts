// Written by docs/generate.ts from the tracked files of extensions/ and builtin-tools/. Do not edit.
// biome-ignore-all format lint assist: generated
import type { BuiltinUnit } from "./host.ts";
import m0 from "../../builtin-tools/ask.ts";
import m1 from "../../builtin-tools/bash.ts";
import m2 from "../../builtin-tools/edit.ts";
import m3 from "../../builtin-tools/find.ts";
import m4 from "../../builtin-tools/grep.ts";
import m5 from "../../builtin-tools/job.ts";
import m6 from "../../builtin-tools/ls.ts";
import m7 from "../../builtin-tools/read.ts";
import m8 from "../../builtin-tools/task.ts";
import m9 from "../../builtin-tools/todo.ts";
import m10 from "../../builtin-tools/web-search.ts";
import m11 from "../../builtin-tools/write.ts";
import m12 from "../../extensions/approval/approval.ts";
import m13 from "../../extensions/approval/plan-mode.ts";
import m14 from "../../extensions/artifacts/artifact.ts";
import m15 from "../../extensions/background/cancel-background-session.ts";
import m16 from "../../extensions/background/get-background-sessions.ts";
import m17 from "../../extensions/background/hooks.ts";
import m18 from "../../extensions/background/service.ts";
import m19 from "../../extensions/compaction/auto-compaction-enabled.ts";
import m20 from "../../extensions/compaction/auto-compaction-end.ts";
import m21 from "../../extensions/compaction/auto-compaction-start.ts";
import m22 from "../../extensions/compaction/blanked-outputs.ts";
import m23 from "../../extensions/compaction/compact.ts";
import m24 from "../../extensions/compaction/hooks.ts";
import m25 from "../../extensions/compaction/idle.ts";
import m26 from "../../extensions/compaction/set-auto-compaction.ts";
import m27 from "../../extensions/compaction/settings.ts";
import m28 from "../../extensions/compaction/slot.ts";
import m29 from "../../extensions/dialects/file-queue.ts";
import m30 from "../../extensions/dialects/omp.ts";
import m31 from "../../extensions/dialects/pi.ts";
import m32 from "../../extensions/dialects/prompt-memory.ts";
import m33 from "../../extensions/dialects/shared-events.ts";
import m34 from "../../extensions/dialects/verdicts.ts";
import m35 from "../../extensions/dialects/veyyon.ts";
import m36 from "../../extensions/export/export-html.ts";
import m37 from "../../extensions/extension-management/get-extensions.ts";
import m38 from "../../extensions/extension-management/reload-extensions.ts";
import m39 from "../../extensions/extension-management/set-extension-enabled.ts";
import m40 from "../../extensions/files/file-locks.ts";
import m41 from "../../extensions/handoff/handoff.ts";
import m42 from "../../extensions/handoff/settings.ts";
import m43 from "../../extensions/host-tools/host-tool-call.ts";
import m44 from "../../extensions/host-tools/set-host-tools.ts";
import m45 from "../../extensions/host-uris/host-uri-request.ts";
import m46 from "../../extensions/host-uris/set-host-uri-schemes.ts";
import m47 from "../../extensions/host-uris/uris.ts";
import m48 from "../../extensions/isolation/settings.ts";
import m49 from "../../extensions/jobs/hooks.ts";
import m50 from "../../extensions/jobs/jobs.ts";
import m51 from "../../extensions/jobs/service.ts";
import m52 from "../../extensions/login/anthropic.ts";
import m53 from "../../extensions/login/get-login-providers.ts";
import m54 from "../../extensions/login/login.ts";
import m55 from "../../extensions/login/openai.ts";
import m56 from "../../extensions/login/openrouter.ts";
import m57 from "../../extensions/login/slash-commands.ts";
import m58 from "../../extensions/models/cycle-model.ts";
import m59 from "../../extensions/models/get-available-models.ts";
import m60 from "../../extensions/models/model-changed.ts";
import m61 from "../../extensions/models/models.ts";
import m62 from "../../extensions/models/set-model.ts";
import m63 from "../../extensions/models/unavailable-model.ts";
import m64 from "../../extensions/prompt/append-file.ts";
import m65 from "../../extensions/prompt/context-files.ts";
import m66 from "../../extensions/prompt/environment.ts";
import m67 from "../../extensions/prompt/prompt-files.ts";
import m68 from "../../extensions/prompt/role.ts";
import m69 from "../../extensions/prompt/settings.ts";
import m70 from "../../extensions/prompt/skills.ts";
import m71 from "../../extensions/prompt/system-file.ts";
import m72 from "../../extensions/prompt/tools.ts";
import m73 from "../../extensions/prompting/abort-and-prompt.ts";
import m74 from "../../extensions/prompting/abort.ts";
import m75 from "../../extensions/prompting/follow-up.ts";
import m76 from "../../extensions/prompting/prompt-result.ts";
import m77 from "../../extensions/prompting/prompt.ts";
import m78 from "../../extensions/prompting/steer.ts";
import m79 from "../../extensions/protocol/negotiate-protocol.ts";
import m80 from "../../extensions/providers/anthropic.ts";
import m81 from "../../extensions/providers/offline.ts";
import m82 from "../../extensions/providers/openai.ts";
import m83 from "../../extensions/providers/refused-images.ts";
import m84 from "../../extensions/providers/transport.ts";
import m85 from "../../extensions/queue-modes/set-follow-up-mode.ts";
import m86 from "../../extensions/queue-modes/set-interrupt-mode.ts";
import m87 from "../../extensions/queue-modes/set-message-updates.ts";
import m88 from "../../extensions/queue-modes/set-steering-mode.ts";
import m89 from "../../extensions/retry/abort-retry.ts";
import m90 from "../../extensions/retry/auto-retry-end.ts";
import m91 from "../../extensions/retry/auto-retry-start.ts";
import m92 from "../../extensions/retry/fallback-frames.ts";
import m93 from "../../extensions/retry/fallback-return.ts";
import m94 from "../../extensions/retry/hooks.ts";
import m95 from "../../extensions/retry/retry.ts";
import m96 from "../../extensions/retry/set-auto-retry.ts";
import m97 from "../../extensions/retry/settings.ts";
import m98 from "../../extensions/retry/slot.ts";
import m99 from "../../extensions/rules/rule.ts";
import m100 from "../../extensions/rules/rules.ts";
import m101 from "../../extensions/rules/settings.ts";
import m102 from "../../extensions/rules/slots.ts";
import m103 from "../../extensions/rules/ttsr-triggered.ts";
import m104 from "../../extensions/sandbox/sandbox.ts";
import m105 from "../../extensions/sessions/branch.ts";
import m106 from "../../extensions/sessions/get-branch-messages.ts";
import m107 from "../../extensions/sessions/get-entries.ts";
import m108 from "../../extensions/sessions/get-last-assistant-text.ts";
import m109 from "../../extensions/sessions/get-messages-page.ts";
import m110 from "../../extensions/sessions/get-messages.ts";
import m111 from "../../extensions/sessions/get-session-stats.ts";
import m112 from "../../extensions/sessions/get-tree.ts";
import m113 from "../../extensions/sessions/list-sessions.ts";
import m114 from "../../extensions/sessions/new-session.ts";
import m115 from "../../extensions/sessions/set-session-name.ts";
import m116 from "../../extensions/sessions/switch-session.ts";
import m117 from "../../extensions/settings/conflicts.ts";
import m118 from "../../extensions/settings/known-settings.ts";
import m119 from "../../extensions/settings/settings.ts";
import m120 from "../../extensions/shell/abort-bash.ts";
import m121 from "../../extensions/shell/abort.ts";
import m122 from "../../extensions/shell/bash.ts";
import m123 from "../../extensions/shell/rpc-runs.ts";
import m124 from "../../extensions/shell/shell.ts";
import m125 from "../../extensions/skills/skill.ts";
import m126 from "../../extensions/skills/skills.ts";
import m127 from "../../extensions/slash/agents.ts";
import m128 from "../../extensions/slash/available-commands-update.ts";
import m129 from "../../extensions/slash/branch.ts";
import m130 from "../../extensions/slash/command-output.ts";
import m131 from "../../extensions/slash/config-update.ts";
import m132 from "../../extensions/slash/context.ts";
import m133 from "../../extensions/slash/dump.ts";
import m134 from "../../extensions/slash/extensions.ts";
import m135 from "../../extensions/slash/get-available-commands.ts";
import m136 from "../../extensions/slash/help.ts";
import m137 from "../../extensions/slash/model.ts";
import m138 from "../../extensions/slash/queue.ts";
import m139 from "../../extensions/slash/reload.ts";
import m140 from "../../extensions/slash/rename.ts";
import m141 from "../../extensions/slash/session-info-update.ts";
import m142 from "../../extensions/slash/session.ts";
import m143 from "../../extensions/slash/settings.ts";
import m144 from "../../extensions/slash/skills.ts";
import m145 from "../../extensions/slash/slash-commands.ts";
import m146 from "../../extensions/slash/thinking.ts";
import m147 from "../../extensions/slash/todo.ts";
import m148 from "../../extensions/slash/tools.ts";
import m149 from "../../extensions/slash/usage.ts";
import m150 from "../../extensions/state/conversation-fields.ts";
import m151 from "../../extensions/state/get-state.ts";
import m152 from "../../extensions/state/set-event-filter.ts";
import m153 from "../../extensions/subagents/agents.ts";
import m154 from "../../extensions/subagents/assignment.ts";
import m155 from "../../extensions/subagents/bundled-agents.ts";
import m156 from "../../extensions/subagents/get-subagent-messages.ts";
import m157 from "../../extensions/subagents/get-subagents.ts";
import m158 from "../../extensions/subagents/last-call.ts";
import m159 from "../../extensions/subagents/service.ts";
import m160 from "../../extensions/subagents/set-subagent-subscription.ts";
import m161 from "../../extensions/subagents/settings.ts";
import m162 from "../../extensions/subagents/subagent-event.ts";
import m163 from "../../extensions/subagents/subagent-lifecycle.ts";
import m164 from "../../extensions/subagents/subagent-progress.ts";
import m165 from "../../extensions/subagents/yield.ts";
import m166 from "../../extensions/templates/templates.ts";
import m167 from "../../extensions/thinking/cycle-thinking-level.ts";
import m168 from "../../extensions/thinking/get-available-thinking-levels.ts";
import m169 from "../../extensions/thinking/set-thinking-level.ts";
import m170 from "../../extensions/thinking/thinking-level-changed.ts";
import m171 from "../../extensions/todos/eager.ts";
import m172 from "../../extensions/todos/nudge.ts";
import m173 from "../../extensions/todos/reminder.ts";
import m174 from "../../extensions/todos/set-todos.ts";
import m175 from "../../extensions/todos/todo-auto-clear.ts";
import m176 from "../../extensions/todos/todo-phases.ts";
import m177 from "../../extensions/todos/todo-reminder.ts";
import m178 from "../../extensions/todos/todos.ts";
import m179 from "../../extensions/trust/guardian.ts";
import m180 from "../../extensions/ui/cancel.ts";
import m181 from "../../extensions/ui/confirm.ts";
import m182 from "../../extensions/ui/editor.ts";
import m183 from "../../extensions/ui/input.ts";
import m184 from "../../extensions/ui/notify.ts";
import m185 from "../../extensions/ui/open-url.ts";
import m186 from "../../extensions/ui/select.ts";
import m187 from "../../extensions/ui/set-editor-text.ts";
import m188 from "../../extensions/ui/set-status.ts";
import m189 from "../../extensions/ui/set-title.ts";
import m190 from "../../extensions/ui/set-widget.ts";

/** Every built-in unit; `sources` are relative to the repository. */
export const builtins: readonly BuiltinUnit[] = [
  { id: "builtin:approval", name: "approval", sources: "extensions/approval", definitions: () => [m12, m13] },
  { id: "builtin:artifacts", name: "artifacts", sources: "extensions/artifacts", definitions: () => [m14] },
  { id: "builtin:background", name: "background", sources: "extensions/background", definitions: () => [m15, m16, m17, m18] },
  { id: "builtin:compaction", name: "compaction", sources: "extensions/compaction", definitions: () => [m19, m20, m21, m22, m23, m24, m25, m26, m27, m28] },
  { id: "builtin:dialects", name: "dialects", sources: "extensions/dialects", definitions: () => [m29, m30, m31, m32, m33, m34, m35] },
  { id: "builtin:export", name: "export", sources: "extensions/export", definitions: () => [m36] },
  { id: "builtin:extension-management", name: "extension-management", sources: "extensions/extension-management", definitions: () => [m37, m38, m39] },
  { id: "builtin:files", name: "files", sources: "extensions/files", definitions: () => [m40] },
  { id: "builtin:handoff", name: "handoff", sources: "extensions/handoff", definitions: () => [m41, m42] },
  { id: "builtin:host-tools", name: "host-tools", sources: "extensions/host-tools", definitions: () => [m43, m44] },
  { id: "builtin:host-uris", name: "host-uris", sources: "extensions/host-uris", definitions: () => [m45, m46, m47] },
  { id: "builtin:isolation", name: "isolation", sources: "extensions/isolation", definitions: () => [m48] },
  { id: "builtin:jobs", name: "jobs", sources: "extensions/jobs", definitions: () => [m49, m50, m51] },
  { id: "builtin:login", name: "login", sources: "extensions/login", definitions: () => [m52, m53, m54, m55, m56, m57] },
  { id: "builtin:models", name: "models", sources: "extensions/models", definitions: () => [m58, m59, m60, m61, m62, m63] },
  { id: "builtin:prompt", name: "prompt", sources: "extensions/prompt", definitions: () => [m64, m65, m66, m67, m68, m69, m70, m71, m72] },
  { id: "builtin:prompting", name: "prompting", sources: "extensions/prompting", definitions: () => [m73, m74, m75, m76, m77, m78] },
  { id: "builtin:protocol", name: "protocol", sources: "extensions/protocol", definitions: () => [m79] },
  { id: "builtin:providers", name: "providers", sources: "extensions/providers", definitions: () => [m80, m81, m82, m83, m84] },
  { id: "builtin:queue-modes", name: "queue-modes", sources: "extensions/queue-modes", definitions: () => [m85, m86, m87, m88] },
  { id: "builtin:retry", name: "retry", sources: "extensions/retry", definitions: () => [m89, m90, m91, m92, m93, m94, m95, m96, m97, m98] },
  { id: "builtin:rules", name: "rules", sources: "extensions/rules", definitions: () => [m99, m100, m101, m102, m103] },
  { id: "builtin:sandbox", name: "sandbox", sources: "extensions/sandbox", definitions: () => [m104] },
  { id: "builtin:sessions", name: "sessions", sources: "extensions/sessions", definitions: () => [m105, m106, m107, m108, m109, m110, m111, m112, m113, m114, m115, m116] },
  { id: "builtin:settings", name: "settings", sources: "extensions/settings", definitions: () => [m117, m118, m119] },
  { id: "builtin:shell", name: "shell", sources: "extensions/shell", definitions: () => [m120, m121, m122, m123, m124] },
  { id: "builtin:skills", name: "skills", sources: "extensions/skills", definitions: () => [m125, m126] },
  { id: "builtin:slash", name: "slash", sources: "extensions/slash", definitions: () => [m127, m128, m129, m130, m131, m132, m133, m134, m135, m136, m137, m138, m139, m140, m141, m142, m143, m144, m145, m146, m147, m148, m149] },
  { id: "builtin:state", name: "state", sources: "extensions/state", definitions: () => [m150, m151, m152] },
  { id: "builtin:subagents", name: "subagents", sources: "extensions/subagents", definitions: () => [m153, m154, m155, m156, m157, m158, m159, m160, m161, m162, m163, m164, m165] },
  { id: "builtin:templates", name: "templates", sources: "extensions/templates", definitions: () => [m166] },
  { id: "builtin:thinking", name: "thinking", sources: "extensions/thinking", definitions: () => [m167, m168, m169, m170] },
  { id: "builtin:todos", name: "todos", sources: "extensions/todos", definitions: () => [m171, m172, m173, m174, m175, m176, m177, m178] },
  { id: "builtin:trust", name: "trust", sources: "extensions/trust", definitions: () => [m179] },
  { id: "builtin:ui", name: "ui", sources: "extensions/ui", definitions: () => [m180, m181, m182, m183, m184, m185, m186, m187, m188, m189, m190] },
  { id: "builtin:tool/ask", name: "ask", sources: "builtin-tools/ask.ts", definitions: () => [m0] },
  { id: "builtin:tool/bash", name: "bash", sources: "builtin-tools/bash.ts", definitions: () => [m1] },
  { id: "builtin:tool/edit", name: "edit", sources: "builtin-tools/edit.ts", definitions: () => [m2] },
  { id: "builtin:tool/find", name: "find", sources: "builtin-tools/find.ts", definitions: () => [m3] },
  { id: "builtin:tool/grep", name: "grep", sources: "builtin-tools/grep.ts", definitions: () => [m4] },
  { id: "builtin:tool/job", name: "job", sources: "builtin-tools/job.ts", definitions: () => [m5] },
  { id: "builtin:tool/ls", name: "ls", sources: "builtin-tools/ls.ts", definitions: () => [m6] },
  { id: "builtin:tool/read", name: "read", sources: "builtin-tools/read.ts", definitions: () => [m7] },
  { id: "builtin:tool/task", name: "task", sources: "builtin-tools/task.ts", definitions: () => [m8] },
  { id: "builtin:tool/todo", name: "todo", sources: "builtin-tools/todo.ts", definitions: () => [m9] },
  { id: "builtin:tool/web-search", name: "web-search", sources: "builtin-tools/web-search.ts", definitions: () => [m10] },
  { id: "builtin:tool/write", name: "write", sources: "builtin-tools/write.ts", definitions: () => [m11] },
];
